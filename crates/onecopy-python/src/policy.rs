//! `on_error` as Python gives it: a word, or a function that is asked on whatever thread found the error.

use std::cell::Cell;

use onecopy::config::{Answer, Handler, OnError};
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::error::{exception, to_py};

thread_local! {
    /// How many functions are being asked on this thread, one within the other.
    static ASKING: Cell<u32> = const { Cell::new(0) };
}

/// What was given.
#[derive(FromPyObject)]
pub(crate) enum Wish {
    Word(String),
    Function(Py<PyAny>),
}

/// What to do about errors.
#[derive(Clone)]
pub(crate) enum Policy {
    /// The same about each.
    Always(Answer),
    /// What the function says. Counted by us and not by Python, so that the engine's part of a load adds nothing that the
    /// garbage collector does not see.
    Ask(Arc<Py<PyAny>>),
}

impl Policy {
    pub(crate) fn of(wish: Wish) -> Result<Self, Error> {
        match wish {
            Wish::Word(word) => match word.parse() {
                Ok(answer) => Ok(Self::Always(answer)),
                Err(why) => Err(Error::new(
                    ErrorKind::InvalidInput,
                    "take the option",
                    "on_error",
                    why,
                )),
            },
            Wish::Function(function) => Ok(Self::Ask(Arc::new(function))),
        }
    }

    /// What is to be done about `error`, an exception.
    pub(crate) fn answer(&self, error: &Bound<'_, PyAny>) -> PyResult<Answer> {
        match self {
            Self::Always(answer) => Ok(*answer),
            Self::Ask(function) => ask(function.bind(error.py()), error),
        }
    }

    /// The same for the engine, which asks while it holds no lock.
    pub(crate) fn for_engine(&self) -> OnError {
        match self {
            Self::Always(answer) => OnError::from(*answer),
            Self::Ask(function) => {
                let function = Arc::clone(function);
                OnError::Ask(Handler::new(move |error| ask_about(&function, error)))
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Always(_) => Ok(()),
            Self::Ask(function) => visit.call(&**function),
        }
    }
}

/// Asks from any thread: one of the engine's waits for the interpreter, which whoever waits for the engine has let go. Where
/// Python is ending nobody can be asked any more, and the error ends the load.
fn ask_about(function: &Py<PyAny>, error: &Error) -> Result<Answer, Error> {
    let asked = Python::try_attach(|py| ask(function.bind(py), &exception(py, error)?))
        .unwrap_or(Ok(Answer::Raise));
    // The exception goes along to whoever takes from the load, and is raised there as it is: see `to_py`.
    asked.map_err(|raised| {
        Error::new(
            ErrorKind::InvalidInput,
            "ask",
            "the function of on_error",
            "it raised an exception",
        )
        .with_source(raised)
    })
}

fn ask(function: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) -> PyResult<Answer> {
    let said = {
        let _asking = Asking::begin();
        function.call1((error,))?
    };
    let why = match said.extract::<String>() {
        Ok(word) => match word.parse() {
            Ok(answer) => return Ok(answer),
            Err(_unknown) => format!("it is {word:?}"),
        },
        Err(_no_text) => format!("it is of type {}", said.get_type().name()?),
    };
    let wrong = Error::new(
        ErrorKind::InvalidInput,
        "take the answer of",
        "the function of on_error",
        why,
    )
    .with_help("return \"raise\", \"warn\" or \"skip\"");
    Err(to_py(error.py(), wrong))
}

/// Held while a function is asked.
struct Asking;

impl Asking {
    fn begin() -> Self {
        ASKING.set(ASKING.get() + 1);
        Self
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.set(ASKING.get() - 1);
    }
}

/// Whether a function is being asked on this thread: the load that asked goes on only once it has answered, so that nothing
/// may be waited for here.
pub(crate) fn is_asking() -> bool {
    ASKING.get() > 0
}

/// Refuses to go on with a load while a function is asked on this thread.
#[pyfunction]
pub(crate) fn check_not_asking(py: Python<'_>) -> PyResult<()> {
    if !is_asking() {
        return Ok(());
    }
    let waits = "the load that asked waits for its answer";
    let error = Error::new(
        ErrorKind::InvalidInput,
        "go on with an iteration in",
        "the function of on_error",
        waits,
    )
    .with_help("return \"raise\", \"warn\" or \"skip\", and iterate outside of it");
    Err(to_py(py, error))
}
