//! Executes calls: the functions of a module, and those of the objects that calls return.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::module::Functions;
use tilewright_runtime::{Function, Module, Registry};

use crate::values::{Objects, Packed, ValueError, pack, unpack_list};
use crate::wire;

/// Modules and functions that a client can have at a time.
const OBJECTS: usize = 1024;

/// A side that is called.
pub(crate) struct Host {
    kept: Kept,
    /// Bytes of the call that comes, as far as they arrived; none once they are too many.
    bulk: Option<Vec<u8>>,
    /// Most of them.
    most: u64,
}

/// The objects that the caller can refer to.
struct Kept {
    /// Number 0.
    root: Module,
    others: HashMap<u64, Object>,
    next: u64,
}

enum Object {
    Module(Module),
    Function(Function),
}

impl Host {
    /// A side that has the functions of `root`; a call has at most `most` bytes.
    pub fn new(root: Module, most: u64) -> Host {
        let kept = Kept { root, others: HashMap::new(), next: 1 };
        Host { kept, bulk: Some(Vec::new()), most }
    }

    /// Takes bytes of the next call.
    pub fn bulk(&mut self, piece: &[u8]) {
        match &mut self.bulk {
            Some(bulk) if (bulk.len() + piece.len()) as u64 <= self.most => bulk.extend_from_slice(piece),
            bulk => *bulk = None,
        }
    }

    /// Forgets an object.
    pub fn release(&mut self, id: u64) {
        self.kept.others.remove(&id);
    }

    /// Calls a function. The error is a text for a person.
    pub fn call(&mut self, call: &wire::Call) -> Result<Packed, String> {
        let bulk = self.bulk.replace(Vec::new());
        let bulk = bulk.ok_or_else(|| {
            let most = self.most;
            format!(
                "the call has more than {most} bytes, the limit of the server; raise its --max-memory, or send less"
            )
        })?;
        let function = self.kept.find(call.object, &call.name)?;
        let text = |error: ValueError| error.to_string();
        let arguments = unpack_list(&call.arguments, Bytes::from(bulk), &mut self.kept).map_err(text)?;
        // A panic of a function is its caller's error alone. What it leaves behind is the function's own.
        let outcome = catch_unwind(AssertUnwindSafe(|| function.call(&arguments)));
        let result = outcome.map_err(|_| format!("{} panicked; see the log of the server", function.name()))?;
        let value = result.map_err(|error| error.to_string())?;
        let next = self.kept.next;
        pack(&value, &mut self.kept).map_err(|error| {
            // The caller does not learn the numbers of what it does not get.
            self.kept.others.retain(|id, _| *id < next);
            format!("the result of {} cannot be sent: {error}", function.name())
        })
    }
}

/// The functions of a registry as a module.
pub(crate) struct Registered(pub Registry);

impl Functions for Registered {
    fn kind(&self) -> &'static str {
        "server"
    }

    fn name(&self) -> String {
        "the server".into()
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        Ok(self.0.get(name))
    }
}

/// The bytes of a message in pieces that can be sent.
pub(crate) fn pieces(bulk: Vec<Bytes>) -> impl Iterator<Item = Bytes> {
    bulk.into_iter().flat_map(|bytes| {
        let len = bytes.len();
        (0..len).step_by(crate::PIECE).map(move |at| bytes.slice(at..len.min(at + crate::PIECE)))
    })
}

/// The names of a module's functions, as many as a message can have.
pub(crate) fn names(module: &Module) -> Vec<String> {
    let mut left = crate::values::TREE / 4;
    let fits = |name: &String| {
        let fits = name.len() < left;
        left = left.saturating_sub(name.len() + 2);
        fits
    };
    module.names().into_iter().take_while(fits).collect()
}

impl Kept {
    fn find(&self, object: u64, name: &str) -> Result<Function, String> {
        let of = |module: &Module| module.function(name).map_err(|error| error.to_string());
        match (object, self.others.get(&object)) {
            (0, _) => of(&self.root),
            (_, Some(Object::Module(module))) => of(module),
            (_, Some(Object::Function(function))) => Ok(function.clone()),
            (_, None) => Err(ValueError::Unknown(object).to_string()),
        }
    }

    fn keep(&mut self, object: Object) -> Result<u64, ValueError> {
        if self.others.len() >= OBJECTS {
            return Err(ValueError::Many(OBJECTS));
        }
        let id = self.next;
        self.next += 1;
        self.others.insert(id, object);
        Ok(id)
    }
}

impl Objects for Kept {
    fn module(&mut self, module: &Module) -> Result<wire::Object, ValueError> {
        let id = self.keep(Object::Module(module.clone()))?;
        let functions = names(module);
        let has_more_functions = functions.len() < module.names().len();
        Ok(wire::Object { id, name: module.name(), kind: module.kind().into(), functions, has_more_functions })
    }

    fn function(&mut self, function: &Function) -> Result<wire::Object, ValueError> {
        let id = self.keep(Object::Function(function.clone()))?;
        Ok(wire::Object { id, name: function.name().into(), ..wire::Object::default() })
    }

    fn to_module(&mut self, object: wire::Object) -> Result<Module, ValueError> {
        match self.others.get(&object.id) {
            Some(Object::Module(module)) => Ok(module.clone()),
            _ => Err(ValueError::Unknown(object.id)),
        }
    }

    fn to_function(&mut self, object: wire::Object) -> Result<Function, ValueError> {
        match self.others.get(&object.id) {
            Some(Object::Function(function)) => Ok(function.clone()),
            _ => Err(ValueError::Unknown(object.id)),
        }
    }
}
