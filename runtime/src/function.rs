//! Functions whose type is erased: they take values and return one, whichever language they are written in.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::value::{Kind, Value, WrongKind};

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// An argument is missing.
    #[error("{function} was called with {given} arguments, but it takes {}", wanted_text(*least, *most))]
    Count {
        /// The function.
        function: String,
        /// Arguments given.
        given: usize,
        /// Fewest arguments.
        least: usize,
        /// Most arguments; `None` for any number.
        most: Option<usize>,
    },
    /// An argument of the wrong kind.
    #[error("argument {index} of {function}: {source}")]
    Argument {
        /// The function.
        function: String,
        /// The argument's place, from 0.
        index: usize,
        /// Kind found and kind expected.
        source: WrongKind,
    },
    /// No function of that name.
    #[error("no function of {of} is named {name}; there are: {}", known.join(", "))]
    Unknown {
        /// Where it was looked for.
        of: String,
        /// The name.
        name: String,
        /// Names that are there, sorted.
        known: Vec<String>,
    },
    /// No device of that kind.
    #[error("there is no device {name} here; there are: {}", known.join(", "))]
    NoDevice {
        /// Its kind, as the name that was asked for begins.
        name: String,
        /// Kinds that are there, sorted.
        known: Vec<String>,
    },
    /// The function itself failed.
    #[error("{function}: {source}")]
    Failed {
        /// The function.
        function: String,
        /// Why.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl CallError {
    /// The error of a function that failed: the error itself, if it is that of a call.
    pub fn of(function: &str, error: AnyError) -> CallError {
        match error.downcast::<CallError>() {
            Ok(error) => *error,
            Err(source) => CallError::Failed { function: function.to_string(), source: source.into() },
        }
    }
}

fn wanted_text(least: usize, most: Option<usize>) -> String {
    match most {
        Some(most) if most == least => most.to_string(),
        Some(most) => format!("{least} to {most}"),
        None => format!("{least} or more"),
    }
}

/// An error of any type, as functions return it.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// The arguments of a call.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    function: &'a str,
    values: &'a [Value],
}

impl<'a> Args<'a> {
    /// All of them.
    pub fn values(&self) -> &'a [Value] {
        self.values
    }

    /// Checks how many there are; `most` is `None` for any number.
    ///
    /// # Errors
    /// [`CallError::Count`].
    pub fn count(&self, least: usize, most: Option<usize>) -> Result<(), CallError> {
        let given = self.values.len();
        if given < least || most.is_some_and(|most| given > most) {
            return Err(CallError::Count { function: self.function.to_string(), given, least, most });
        }
        Ok(())
    }

    /// The argument at `index`, of the type that the caller names.
    ///
    /// # Errors
    /// [`CallError::Count`] without it, [`CallError::Argument`] if it is of another kind.
    pub fn get<T>(&self, index: usize) -> Result<&'a T, CallError>
    where
        &'a T: TryFrom<&'a Value, Error = WrongKind>,
    {
        self.count(index + 1, None)?;
        <&'a T>::try_from(&self.values[index]).map_err(|source| self.wrong(index, source))
    }

    /// Like [`Args::get`]; `None` if the argument is missing or no value.
    ///
    /// # Errors
    /// [`CallError::Argument`].
    pub fn option<T>(&self, index: usize) -> Result<Option<&'a T>, CallError>
    where
        &'a T: TryFrom<&'a Value, Error = WrongKind>,
    {
        match self.values.get(index) {
            None | Some(Value::None) => Ok(None),
            Some(_) => self.get(index).map(Some),
        }
    }

    /// The tensors among the arguments from `first`: all that follow, or those of one list.
    ///
    /// # Errors
    /// [`CallError::Argument`] if one of them is of another kind.
    pub fn tensors(&self, first: usize) -> Result<Vec<crate::tensor::Tensor>, CallError> {
        let rest = self.values.get(first..).unwrap_or_default();
        let (list, at) = match rest {
            [Value::List(list)] => (&list[..], None),
            values => (values, Some(first)),
        };
        list.iter()
            .enumerate()
            .map(|(index, value)| match value {
                Value::Tensor(tensor) => Ok(tensor.clone()),
                other => {
                    let source = WrongKind { found: other.kind(), wanted: Kind::Tensor };
                    Err(self.wrong(at.map_or(first, |at| at + index), source))
                }
            })
            .collect()
    }

    fn wrong(&self, index: usize, source: WrongKind) -> CallError {
        CallError::Argument { function: self.function.to_string(), index, source }
    }
}

type Body = dyn Fn(Args) -> Result<Value, AnyError> + Send + Sync;

/// A named function of values. Copies refer to the same function.
#[derive(Clone)]
pub struct Function {
    name: Arc<str>,
    body: Arc<Body>,
}

impl Function {
    /// A function; `name` is used in messages.
    pub fn new(name: &str, body: impl Fn(Args) -> Result<Value, AnyError> + Send + Sync + 'static) -> Function {
        Function { name: name.into(), body: Arc::new(body) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`CallError`]; what the function itself reports is [`CallError::Failed`].
    pub fn call(&self, args: &[Value]) -> Result<Value, CallError> {
        (self.body)(Args { function: &self.name, values: args }).map_err(|error| CallError::of(&self.name, error))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn arguments_are_checked_and_failures_name_the_function() {
        let repeat = Function::new("repeat", |args| {
            args.count(1, Some(2))?;
            let times = args.option::<i64>(1)?.copied().unwrap_or(2);
            let times = usize::try_from(times).map_err(|_| format!("{times} times is not possible"))?;
            Ok(args.get::<String>(0)?.repeat(times).into())
        });
        let call = |args: &[Value]| repeat.call(args).map(|value| value.to_string()).map_err(|e| e.to_string());
        assert_eq!(call(&["ab".into()]), Ok("\"abab\"".into()));
        assert_eq!(call(&["ab".into(), Value::None]), Ok("\"abab\"".into()));
        assert_eq!(call(&["ab".into(), 3.into()]), Ok("\"ababab\"".into()));
        assert_eq!(call(&[]), Err("repeat was called with 0 arguments, but it takes 1 to 2".into()));
        let wrong = "argument 1 of repeat: it is a float where an integer is expected";
        assert_eq!(call(&["ab".into(), 1.5.into()]), Err(wrong.into()));
        assert_eq!(call(&["ab".into(), (-1).into()]), Err("repeat: -1 times is not possible".into()));
    }

    #[test]
    fn tensors_are_taken_from_a_list_or_one_by_one() {
        let count = Function::new("count", |args| Ok((args.tensors(1)?.len() as i64).into()));
        let tensor = || Value::Tensor(Tensor::from_i8(vec![1], &[1]).unwrap());
        let call = |args: &[Value]| count.call(args).map(|value| value.to_string()).map_err(|e| e.to_string());
        assert_eq!(call(&[0.into(), tensor(), tensor()]), Ok("2".into()));
        assert_eq!(call(&[0.into(), Value::List(vec![tensor(), tensor()])]), Ok("2".into()));
        assert_eq!(call(&[0.into()]), Ok("0".into()));
        let wrong = "argument 2 of count: it is an integer where a tensor is expected";
        assert_eq!(call(&[0.into(), tensor(), 1.into()]), Err(wrong.into()));
    }
}
