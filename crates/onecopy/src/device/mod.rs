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
        // What people call a GPU, whoever made it.
        let family = text.split(':').next().unwrap_or_default();
        let is_gpu = ["cuda", "gpu", "mps", "xpu", "hip"].contains(&family);
        let (kind, why, help) = if is_gpu {
            let help = "use `device=cpu`, and copy each batch to the GPU in the training loop";
            let why = "this version has no GPU device yet";
            (ErrorKind::Unsupported, why, help)
        } else {
            let why = "there is no such device";
            (ErrorKind::InvalidInput, why, "use `device=cpu`")
        };
        Err(Error::new(kind, "send batches to", format!("{text:?}"), why).with_help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_refused_and_never_silently_replaced() {
        assert_eq!("cpu".parse::<Device>().unwrap(), Device::Cpu);
        for (text, kind) in [
            ("cuda", ErrorKind::Unsupported),
            ("cuda:0", ErrorKind::Unsupported),
            ("gpu", ErrorKind::Unsupported),
            ("cudax", ErrorKind::InvalidInput),
            ("tpu", ErrorKind::InvalidInput),
            ("", ErrorKind::InvalidInput),
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert_eq!(error.kind(), kind, "{text:?}");
            assert!(error.help().unwrap().contains("`device=cpu`"), "{error:?}");
        }
    }
}
