//! The `Device` code that the simulators share: a command queue and memory access by address.

/// Implements `Device` for a simulator. It needs fields `config` and `queue`; `memory()` and `memory_mut()`, its memory
/// as a slice; `host_wrote()`, which is notified of host writes; `run_command()`; and `entries()`, which returns the
/// bytes of scratchpad entries.
macro_rules! device {
    ($simulator:ty, $name:literal) => {
        impl $simulator {
            /// Sets the limit for commands without one: the device aborts them after `limit` cycles, or after `limit`
            /// instructions if it is untimed.
            pub fn with_cycle_limit(mut self, limit: Option<u64>) -> Self {
                self.queue.cycle_limit = limit;
                self
            }
        }

        impl tilewright_hw::device::Device for $simulator {
            fn config(&self) -> &HwConfig {
                &self.config
            }

            fn name(&self) -> &str {
                $name
            }

            fn memory_bytes(&self) -> u64 {
                self.memory().len() as u64
            }

            fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
                let range = tilewright_hw::device::memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
                self.memory_mut()[range.clone()].copy_from_slice(bytes);
                self.host_wrote(range);
                Ok(())
            }

            fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
                let range = tilewright_hw::device::memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
                bytes.copy_from_slice(&self.memory()[range]);
                Ok(())
            }

            fn submit(&mut self, command: &Command) -> Result<tilewright_hw::device::Ticket, DeviceError> {
                self.queue.submit(command, &self.config)
            }

            fn wait(&mut self, ticket: tilewright_hw::device::Ticket) -> Result<RunReport, DeviceError> {
                while let Some((first, command)) = self.queue.next(ticket) {
                    let outcome = self.run_command(&command);
                    self.queue.done(first, outcome);
                }
                self.queue.take(ticket)
            }

            fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
                let size = self.config.entries(mem);
                if entry.checked_add(count).is_none_or(|end| end > size) {
                    let [addr, len, size] = [entry, count, size].map(u64::from);
                    return Err(DeviceError::OutOfMemory { addr, len, size });
                }
                Ok(self.entries(mem, entry, count))
            }
        }
    };
}
pub(crate) use device;
