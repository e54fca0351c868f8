//! Shapes and element types.

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Truth value, one byte.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754, 16 bits.
    F16,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// Two `F32`, real part first.
    C64,
    /// Two `F64`, real part first.
    C128,
}

impl DType {
    /// The size of one element in bytes.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// What NumPy and PyTorch call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }

    /// The size in bytes of what a byte order turns round: half an element where it has two parts.
    pub(super) const fn part_bytes(self) -> usize {
        match self {
            Self::C64 | Self::C128 => self.size_bytes() / 2,
            _ => self.size_bytes(),
        }
    }
}

/// The shape of a value, and how its bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorLayout {
    /// The type of the elements.
    pub dtype: DType,
    /// The length of each axis; empty for a single number. `[3, height, width]` for pictures.
    pub shape: Vec<usize>,
    /// Whether the bytes of `[3, height, width]` lie in the order height, width, 3.
    pub is_channels_last: bool,
    /// Whether the array is stored first axis fastest. What is decoded is always last axis fastest.
    pub is_fortran: bool,
}

impl TensorLayout {
    /// An 8-bit RGB picture.
    #[must_use]
    pub fn rgb(height: u32, width: u32) -> Self {
        Self {
            dtype: DType::U8,
            shape: vec![3, height as usize, width as usize],
            is_channels_last: true,
            is_fortran: false,
        }
    }

    /// How many elements there are.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// How many bytes they take.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.elements() * self.dtype.size_bytes()
    }
}
