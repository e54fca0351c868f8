//! Batches to device memory.
//!
//! Hops here: none yet: on `cpu` the batch's page-locked memory is itself the result. May import: buffer, ledger.
//! Absent: stores and samples; a device is handed memory.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// Where batches go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Device {
    /// Host memory, page-locked where the limits allow.
    #[default]
    Cpu,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "cpu" {
            return Ok(Self::Cpu);
        }
        let is_cuda = text == "cuda" || text.starts_with("cuda:");
        let (kind, why) = if is_cuda {
            (
                ErrorKind::Unsupported,
                "this version has no CUDA device yet",
            )
        } else {
            (ErrorKind::InvalidInput, "there is no such device")
        };
        Err(Error::new(kind, "send batches to", format!("{text:?}"), why).with_help(
            "use \"cpu\": its batches are page-locked, so that a copy to the GPU is one asynchronous DMA",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_refused_and_never_silently_replaced() {
        assert_eq!("cpu".parse::<Device>().unwrap(), Device::Cpu);
        assert_eq!(
            "cuda:0".parse::<Device>().unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        assert_eq!(
            "tpu".parse::<Device>().unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}
