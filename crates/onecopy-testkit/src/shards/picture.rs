//! Pictures with the statistics that matter here: smooth areas, textures, sensor noise.

use jpeg_encoder::{ColorType, Encoder, EncodingError, SamplingFactor};

use crate::random::Random;

/// Chosen with [`GRAIN`] so that 500 x 375 pictures weigh 110 KB on average, which is ImageNet's
/// mean; `tests/shards.rs` holds it to that.
const QUALITY: u8 = 90;

/// The mean strength of the noise, in steps of 1/256. Each picture has between a half and one and
/// a half of it, which spreads the sizes as photographs do.
const GRAIN: f32 = 54.0;

/// Pictures drawn once per dataset and then told apart by a comment.
#[derive(Debug)]
pub(crate) struct Pool {
    pictures: Vec<Vec<u8>>,
}

impl Pool {
    /// Draws `count` pictures.
    pub(crate) fn draw(seed: u64, count: usize, width: u16, height: u16) -> Self {
        let draw = |number| {
            let pixels = paint(&mut Random::new(seed, number), width.into(), height.into());
            // Encoding into memory fails for empty pictures only; those become empty members.
            encode(&pixels, width, height).unwrap_or_default()
        };
        Self {
            pictures: (0..count as u64).map(draw).collect(),
        }
    }

    /// The picture of a sample: one of the pool, with the key in a comment behind the first
    /// marker, where decoders skip it.
    pub(crate) fn picture(&self, number: u64, key: &str) -> Vec<u8> {
        let Some(count) = std::num::NonZeroUsize::new(self.pictures.len()) else {
            return Vec::new();
        };
        let index = usize::try_from(number % count.get() as u64).unwrap_or(0);
        let base = &self.pictures[index];
        let comment = &key.as_bytes()[..key.len().min(1024)];
        let length = u16::try_from(comment.len() + 2).unwrap_or(2);
        let mut bytes = Vec::with_capacity(base.len() + comment.len() + 4);
        bytes.extend_from_slice(&base[..base.len().min(2)]);
        bytes.extend_from_slice(&[0xFF, 0xFE]);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(comment);
        bytes.extend_from_slice(&base[base.len().min(2)..]);
        bytes
    }
}

fn encode(pixels: &[u8], width: u16, height: u16) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    // 4:2:0, as cameras and ImageNet have it; the crate would take 4:4:4 from quality 90 on.
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(pixels, width, height, ColorType::Rgb)?;
    Ok(bytes)
}

/// A grid of random heights, read smoothly in between: one octave of value noise.
struct Octave {
    cells: Vec<f32>,
    across: usize,
    step: f32,
    strength: f32,
}

impl Octave {
    fn new(random: &mut Random, width: usize, height: usize, step: usize, strength: f32) -> Self {
        let across = width / step + 2;
        let cells = (0..across * (height / step + 2))
            .map(|_| random.unit() - 0.5)
            .collect();
        Self {
            cells,
            across,
            step: as_f32(step),
            strength,
        }
    }

    fn at(&self, x: usize, y: usize) -> f32 {
        let (x, y) = (as_f32(x) / self.step, as_f32(y) / self.step);
        let (column, row) = (floor(x), floor(y));
        let (fx, fy) = (x - as_f32(column), y - as_f32(row));
        let cell = row * self.across + column;
        let top = self.cells[cell] * (1.0 - fx) + self.cells[cell + 1] * fx;
        let below = cell + self.across;
        let bottom = self.cells[below] * (1.0 - fx) + self.cells[below + 1] * fx;
        (top * (1.0 - fy) + bottom * fy) * self.strength
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of pictures fit 24 bits")]
fn as_f32(value: usize) -> f32 {
    value as f32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a coordinate in a picture, at least 0"
)]
fn floor(value: f32) -> usize {
    value as usize
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a byte holds"
)]
fn byte(value: f32) -> u8 {
    value.clamp(0.0, 255.0) as u8
}

/// Paints RGB pixels: a gradient of two colours, shapes of several sizes, grain.
fn paint(random: &mut Random, width: usize, height: usize) -> Vec<u8> {
    let octaves: Vec<_> = [(160, 190.0), (48, 110.0), (12, 50.0), (4, 24.0)]
        .into_iter()
        .map(|(step, strength)| Octave::new(random, width, height, step, strength))
        .collect();
    let tint: [f32; 3] = std::array::from_fn(|_| 0.6 + 0.8 * random.unit());
    let base: [f32; 3] = std::array::from_fn(|_| 70.0 + 110.0 * random.unit());
    let grain = GRAIN * (0.5 + random.unit()) / 128.0;
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let light: f32 = octaves.iter().map(|octave| octave.at(x, y)).sum();
            // Three numbers of 8 bits from one draw: noise of the light, red and blue.
            let [a, b, c, d, ..] = random
                .next()
                .to_le_bytes()
                .map(|byte| f32::from(byte) - 127.5);
            let noise = (a + b) * 0.5 * grain;
            let colour = [c * grain * 0.3, 0.0, d * grain * 0.3];
            for channel in 0..3 {
                let value = base[channel] + light * tint[channel] + noise + colour[channel];
                pixels.push(byte(value));
            }
        }
    }
    pixels
}
