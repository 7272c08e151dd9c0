//! Derives dependency tokens from conflicts between instructions.
//!
//! If another unit's instruction must have retired before an instruction starts, because both touch the same data or
//! the same bank's port, the instruction pops a token from it, unless that is known already: each instruction carries a
//! vector clock, the number of each unit's instructions that have retired when it starts.

use crate::conflicts::{ByPort, Conflicts};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Insn, Unit, UnitSet};

/// For each of the four units, the number of instructions known to have retired.
type Clock = [u32; 4];

/// A token: pushed by the instruction at one index of the stream, popped by that at a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    push: usize,
    pop: usize,
}

/// Follows a stream in order and collects its tokens.
pub struct Analysis {
    limit: usize,
    /// The last instruction of each unit that used each port; counts from 1, 0 for none.
    ports: ByPort<u32>,
    /// For each unit: index in the stream and clock of each instruction.
    issued: [Vec<(usize, Clock)>; 4],
    clock: [Clock; 4],
    /// Tokens by pushing and popping unit.
    tokens: [[Vec<Token>; 4]; 4],
    /// By place in the program: unit and number among the unit's instructions.
    numbers: Vec<(Unit, u32)>,
    /// Instructions added.
    len: usize,
}

impl Analysis {
    /// The most tokens of a pair of units that can be in flight; `None` if the configuration's token counters are too
    /// narrow for its queues.
    pub fn limit(config: &HwConfig) -> Option<usize> {
        // A unit's queue and one decoded instruction can hold pops that come after the pusher in the stream.
        (1usize << config.token_bits).checked_sub(2 + config.queue_depth as usize).filter(|&limit| limit > 0)
    }

    /// Starts a stream for a program of `len` instructions.
    pub fn new(limit: usize, len: usize) -> Analysis {
        Analysis {
            limit,
            ports: ByPort::all(0),
            issued: Default::default(),
            clock: Default::default(),
            tokens: Default::default(),
            numbers: vec![(Unit::Load, 0); len],
            len: 0,
        }
    }

    /// Adds the next instruction of the stream, which is at `place` of the program. It waits for the instructions that
    /// it conflicts with, and for those at the places `more`.
    pub fn add(&mut self, place: usize, conflicts: &Conflicts, more: &[u32]) {
        let unit = conflicts.unit;
        let own = unit as usize;
        let mut required: Clock = [0; 4];
        for &place in conflicts.after.iter().chain(more) {
            let (other, number) = self.numbers[place as usize];
            required[other as usize] = required[other as usize].max(number);
        }
        let number = self.issued[own].len() as u32 + 1;
        for &port in &conflicts.ports {
            let last = self.ports.of(port);
            required.iter_mut().zip(last.iter()).for_each(|(need, last)| *need = (*need).max(*last));
            last[own] = number;
        }
        required[own] = 0;
        self.wait(unit, required);
        let mut clock = self.clock[own];
        clock[own] = number;
        self.issued[own].push((self.len, clock));
        self.numbers[place] = (unit, number);
        self.len += 1;
    }

    fn wait(&mut self, unit: Unit, required: Clock) {
        let known = self.clock[unit as usize];
        let missing: Vec<usize> = (0..4).filter(|&u| required[u] > known[u]).collect();
        let clock_of = |u: usize| self.issued[u][required[u] as usize - 1];
        let mut clock = known;
        let mut kept = Vec::new();
        for &u in &missing {
            let (push, at_push) = clock_of(u);
            let implied = missing.iter().any(|&v| v != u && clock_of(v).1[u] >= required[u]);
            if !implied {
                kept.push((u, push));
            }
            for (mine, theirs) in clock.iter_mut().zip(at_push) {
                *mine = (*mine).max(theirs);
            }
        }
        for (u, push) in kept {
            self.tokens[u][unit as usize].push(Token { push, pop: self.len });
        }
        self.clock[unit as usize] = clock;
    }

    /// Writes the token masks into the program.
    ///
    /// If program order has more tokens of a pair in flight than a counter holds in addition to a full queue, the first
    /// waiting instruction waits for the last push instead, which comes before it in the stream.
    pub fn finish(self, program: &mut [Insn]) {
        for (pusher, by_popper) in self.tokens.into_iter().enumerate() {
            for (popper, tokens) in by_popper.into_iter().enumerate() {
                for token in coalesce(tokens, self.limit) {
                    mark(&mut program[token.push].push, popper);
                    mark(&mut program[token.pop].pop, pusher);
                }
            }
        }
    }
}

fn mark(set: &mut UnitSet, unit: usize) {
    set.insert(Unit::ALL[unit]);
}

fn coalesce(tokens: Vec<Token>, limit: usize) -> Vec<Token> {
    let mut done = Vec::new();
    let mut waiting: std::collections::VecDeque<Token> = Default::default();
    for token in tokens {
        while waiting.front().is_some_and(|t| t.pop <= token.push) {
            done.extend(waiting.pop_front());
        }
        waiting.push_back(token);
        if waiting.len() > limit
            && let Some(first) = waiting.front().copied()
        {
            waiting.clear();
            waiting.push_back(Token { push: token.push, pop: first.pop });
        }
    }
    done.extend(waiting);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tokens_become_one_that_waits_for_the_last() {
        let tokens: Vec<Token> = (0..10).map(|k| Token { push: k, pop: 100 + k }).collect();
        let kept = coalesce(tokens, 4);
        assert!(kept.iter().all(|t| t.push < t.pop));
        let balance = |at: usize| kept.iter().filter(|t| t.push < at && t.pop >= at).count();
        assert!((0..120).all(|at| balance(at) <= 4), "{kept:?}");
        assert_eq!(kept[0], Token { push: 8, pop: 100 });
    }
}
