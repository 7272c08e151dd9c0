//! The side that calls: objects of the other side as modules and functions of this one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::module::Functions;
use tilewright_runtime::value::Value;
use tilewright_runtime::{CallError, Function, Module};

use crate::connection::ClientError;
use crate::host::pieces;
use crate::values::{Objects, Packed, ValueError, pack_list, unpack};
use crate::wire::{self, reply, request};

/// Requests and replies of a session.
pub(crate) trait Link: Send {
    /// The other side's name in messages.
    fn name(&self) -> &str;
    /// Sends a request; waits only while too many are on their way.
    fn send(&mut self, kind: request::Kind) -> Result<(), ClientError>;
    /// The next reply; none if it does not come within `at_most`.
    fn next_within(&mut self, at_most: Duration) -> Result<Option<reply::Kind>, ClientError>;
    /// The next reply.
    fn next(&mut self) -> Result<reply::Kind, ClientError> {
        loop {
            if let Some(kind) = self.next_within(Duration::from_secs(3600))? {
                return Ok(kind);
            }
        }
    }
    /// The error for a reply that does not fit the request.
    fn nonsense(&mut self) -> ClientError;
}

/// A side that calls, one call at a time.
pub(crate) struct Caller {
    name: String,
    /// `None` once it is closed.
    line: Mutex<Option<Box<dyn Link>>>,
    /// Objects that this side no longer has, which the other side learns with the next call.
    released: Mutex<Vec<u64>>,
    /// Most bytes of a result.
    most: u64,
}

/// What receives how many bytes of a call are sent, and how many there are.
pub(crate) type Sent<'a> = dyn Fn(u64, u64) + 'a;

impl Caller {
    pub fn new(line: Box<dyn Link>, most: u64) -> Arc<Caller> {
        Arc::new(Caller {
            name: line.name().to_string(),
            line: Mutex::new(Some(line)),
            released: Mutex::default(),
            most,
        })
    }

    /// Ends the session after the call that runs. What the other side has of it is refused from now on.
    pub fn close(&self) {
        drop(self.line.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The other side as a module.
    pub fn root(self: &Arc<Self>, functions: Vec<String>) -> RemoteModule {
        // Functions can be added to a server later.
        let has_more_functions = true;
        let object =
            wire::Object { id: 0, name: self.name.clone(), kind: "server".into(), functions, has_more_functions };
        RemoteModule { handle: Arc::new(Handle { caller: self.clone(), id: 0 }), object }
    }

    /// Calls a function of an object, or the object itself if `name` is empty.
    pub fn call(
        self: &Arc<Self>,
        object: u64,
        name: &str,
        arguments: &[Value],
        sent: &Sent,
    ) -> Result<Value, AnyError> {
        let Packed { tree, bulk } = pack_list(arguments, &mut Here(self))?;
        let mut open = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = open.as_mut().ok_or_else(|| ClientError::Closed { server: self.name.clone() })?;
        let released = std::mem::take(&mut *self.released.lock().unwrap_or_else(PoisonError::into_inner));
        for id in released {
            line.send(request::Kind::Release(id))?;
        }
        let all = bulk.iter().map(|bytes| bytes.len() as u64).sum();
        let mut done = 0;
        for piece in pieces(bulk) {
            done += piece.len() as u64;
            line.send(request::Kind::Bulk(piece))?;
            sent(done, all);
        }
        line.send(request::Kind::Call(wire::Call { object, name: name.into(), arguments: tree.into() }))?;
        let mut bulk = Vec::new();
        loop {
            match line.next()? {
                reply::Kind::Bulk(piece) if (bulk.len() + piece.len()) as u64 <= self.most => {
                    bulk.extend_from_slice(&piece);
                }
                reply::Kind::Returned(tree) => {
                    // Values refer to this side again.
                    drop(open);
                    return Ok(unpack(&tree, Bytes::from(bulk), &mut Here(self))?);
                }
                reply::Kind::Raised(text) => {
                    // The text names the function.
                    let function = self.name.clone();
                    return Err(CallError::Failed { function, source: AnyError::from(text).into() }.into());
                }
                reply::Kind::Progress(_) => {}
                _ => return Err(line.nonsense().into()),
            }
        }
    }
}

/// An object of the other side, which is released when the last copy is dropped.
struct Handle {
    caller: Arc<Caller>,
    id: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.id != 0 {
            self.caller.released.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        }
    }
}

/// A module of the other side.
pub(crate) struct RemoteModule {
    handle: Arc<Handle>,
    object: wire::Object,
}

impl Functions for RemoteModule {
    fn kind(&self) -> &'static str {
        let known = ["artifact", "device", "server", "session"];
        known.into_iter().find(|kind| *kind == self.object.kind).unwrap_or("module")
    }

    fn name(&self) -> String {
        self.object.name.clone()
    }

    fn names(&self) -> Vec<String> {
        self.object.functions.clone()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        // If the list can lack functions, the other side says which are unknown.
        if !self.object.has_more_functions && !self.object.functions.iter().any(|known| known == name) {
            return Ok(None);
        }
        let (handle, of_module) = (self.handle.clone(), name.to_string());
        Ok(Some(Function::new(name, move |args| handle.caller.call(handle.id, &of_module, args.values(), &|_, _| ()))))
    }
}

/// The objects of the other side as those of this one.
struct Here<'a>(&'a Arc<Caller>);

impl Here<'_> {
    fn handle(&self, id: u64) -> Arc<Handle> {
        Arc::new(Handle { caller: self.0.clone(), id })
    }
}

impl Objects for Here<'_> {
    fn module(&mut self, module: &Module) -> Result<wire::Object, ValueError> {
        let foreign = || ValueError::Foreign(format!("module {}", module.name()));
        let own = module.downcast::<RemoteModule>().filter(|own| Arc::ptr_eq(&own.handle.caller, self.0));
        Ok(wire::Object { id: own.ok_or_else(foreign)?.handle.id, ..wire::Object::default() })
    }

    fn function(&mut self, function: &Function) -> Result<wire::Object, ValueError> {
        Err(ValueError::Foreign(format!("function {}", function.name())))
    }

    fn to_module(&mut self, object: wire::Object) -> Result<Module, ValueError> {
        Ok(Module::new(RemoteModule { handle: self.handle(object.id), object }))
    }

    fn to_function(&mut self, object: wire::Object) -> Result<Function, ValueError> {
        let (handle, name) = (self.handle(object.id), object.name);
        Ok(Function::new(&name, move |args| handle.caller.call(handle.id, "", args.values(), &|_, _| ())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A side that is never called.
    struct Silent;

    impl Link for Silent {
        fn name(&self) -> &str {
            "far"
        }

        fn send(&mut self, kind: request::Kind) -> Result<(), ClientError> {
            panic!("{kind:?} is sent")
        }

        fn next_within(&mut self, _: Duration) -> Result<Option<reply::Kind>, ClientError> {
            panic!("a reply is waited for")
        }

        fn nonsense(&mut self) -> ClientError {
            ClientError::Closed { server: "far".into() }
        }
    }

    #[test]
    fn a_module_has_the_functions_of_its_list() {
        let caller = Caller::new(Box::new(Silent), 0);
        let object = |has_more_functions| wire::Object {
            id: 1,
            name: "model".into(),
            kind: "session".into(),
            functions: vec!["run".into()],
            has_more_functions,
        };
        let module = Here(&caller).to_module(object(false)).unwrap();
        assert!(module.function("run").is_ok());
        let unknown = module.function("rum").unwrap_err().to_string();
        assert_eq!(unknown, "no function of model is named rum; there are: run");
        // The other side is asked if the list is cut.
        assert!(Here(&caller).to_module(object(true)).unwrap().function("rum").is_ok());
        assert!(Module::new(caller.root(Vec::new())).function("added").is_ok());
    }
}
