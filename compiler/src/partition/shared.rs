//! Persistent lists: many similar lists share their common parts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Number of children of a branch.
const ARITY: usize = 8;

/// A list with empty places.
///
/// A clone is cheap. A change copies those branches on the path to the place that other lists still share: at most as
/// many as the place's index has digits.
#[derive(Debug)]
pub(super) struct Shared<T> {
    root: Option<Rc<Node<T>>>,
    /// Number of branches from the root to an element, at least one.
    depth: u32,
    print: u64,
}

#[derive(Debug)]
enum Node<T> {
    Branch([Option<Rc<Node<T>>>; ARITY]),
    /// An element, and the hash of it and its place.
    Leaf(T, u64),
}

impl<T> Shared<T> {
    /// An empty list with this many places.
    pub fn new(places: usize) -> Shared<T> {
        let depth = (1..).find(|depth| places <= ARITY.saturating_pow(*depth)).unwrap_or(1);
        Shared { root: None, depth, print: 0 }
    }

    /// A 64-bit hash of the list. Equal lists have equal hashes.
    pub fn print(&self) -> u64 {
        self.print
    }

    /// Returns the element at a place, if there is one.
    pub fn get(&self, place: usize) -> Option<&T> {
        let mut node = self.root.as_deref()?;
        for level in (0..self.depth).rev() {
            let Node::Branch(below) = node else { return None };
            node = below[digit(place, level)].as_deref()?;
        }
        let Node::Leaf(element, _) = node else { return None };
        Some(element)
    }
}

impl<T: Hash> Shared<T> {
    /// Puts an element at a place, or empties it.
    pub fn set(&mut self, place: usize, element: Option<T>) {
        let leaf = element.map(|element| {
            let mut hasher = DefaultHasher::new();
            (place, &element).hash(&mut hasher);
            Rc::new(Node::Leaf(element, hasher.finish()))
        });
        if leaf.is_none() && self.get(place).is_none() {
            return;
        }
        let mut at = &mut self.root;
        for level in (0..self.depth).rev() {
            let below = own(at.get_or_insert_with(|| Rc::new(Node::Branch(Default::default()))));
            at = &mut below[digit(place, level)];
        }
        self.print ^= hash_of(at.as_deref()) ^ hash_of(leaf.as_deref());
        *at = leaf;
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared { root: self.root.clone(), ..*self }
    }
}

fn digit(place: usize, level: u32) -> usize {
    place / ARITY.pow(level) % ARITY
}

fn hash_of<T>(node: Option<&Node<T>>) -> u64 {
    match node {
        Some(Node::Leaf(_, hash)) => *hash,
        _ => 0,
    }
}

/// Returns the children of a branch for modification; copies the branch if other lists share it.
fn own<T>(node: &mut Rc<Node<T>>) -> &mut [Option<Rc<Node<T>>>; ARITY] {
    if Rc::get_mut(node).is_none() {
        #[cfg(test)]
        COPIED.with(|copied| copied.set(copied.get() + 1));
        let below = if let Node::Branch(below) = node.as_ref() { below.clone() } else { Default::default() };
        *node = Rc::new(Node::Branch(below));
    }
    match Rc::get_mut(node) {
        Some(Node::Branch(below)) => below,
        _ => unreachable!("the branch is not shared any more"),
    }
}

#[cfg(test)]
thread_local! {
    /// Number of branches that were copied on this thread.
    pub(super) static COPIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn copies_are_lists_of_their_own_and_have_one_print_where_they_are_equal() {
        let rng = &mut StdRng::seed_from_u64(5);
        for places in [1, 8, 9, 100] {
            let mut lists = vec![(Shared::new(places), vec![None; places])];
            for _ in 0..300 {
                let (mut list, mut plain) = lists[rng.random_range(0..lists.len())].clone();
                let (place, element) =
                    (rng.random_range(0..places), rng.random_bool(0.5).then(|| rng.random_range(0..2)));
                list.set(place, element);
                plain[place] = element;
                lists.push((list, plain));
            }
            for (list, plain) in &lists {
                assert!((0..places).all(|place| list.get(place) == plain[place].as_ref()), "{plain:?}");
                let (other, others) = &lists[rng.random_range(0..lists.len())];
                assert_eq!(list.print() == other.print(), plain == others, "{plain:?} {others:?}");
            }
        }
    }
}
