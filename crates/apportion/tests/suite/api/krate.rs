//! The crate's modules as read from their files, and the resolution of names in them.

use std::collections::BTreeMap;
use std::path::Path;
use syn::{Attribute, Item, ItemImpl, UseTree, Visibility};

/// The index of a module.
pub type ModuleId = usize;

/// A module with its items, those for tests left out.
pub struct Module {
    pub items: Vec<Item>,
    /// Its modules, by name.
    children: BTreeMap<String, (ModuleId, bool)>,
    parent: Option<ModuleId>,
}

/// A name that a module declares, imports or re-exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Module(ModuleId),
    /// An item, by its place in its module.
    Item(ModuleId, usize),
}

/// All modules; the first is the root.
pub struct Krate {
    modules: Vec<Module>,
}

impl Krate {
    /// Reads a crate from its lib.rs.
    pub fn read(root: &Path) -> Self {
        let mut krate = Self { modules: Vec::new() };
        let file = parsed(root);
        krate.add(file.items, None, root.parent().expect("a folder"));
        krate
    }

    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id]
    }

    /// Every impl block with the module that it is in.
    pub fn impls(&self) -> impl Iterator<Item = (ModuleId, &ItemImpl)> {
        let all = self.modules.iter().enumerate();
        all.flat_map(|(id, module)| {
            module.items.iter().filter_map(move |item| match item {
                Item::Impl(block) => Some((id, block)),
                _ => None,
            })
        })
    }

    /// Takes a module in; `folder` holds the files of its modules.
    fn add(&mut self, items: Vec<Item>, parent: Option<ModuleId>, folder: &Path) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module { items: Vec::new(), children: BTreeMap::new(), parent });
        let mut kept = Vec::new();
        for item in items.into_iter().filter(|item| !attributes(item).iter().any(is_test)) {
            let Item::Mod(module) = &item else {
                kept.push(item);
                continue;
            };
            let (name, public) = (module.ident.to_string(), is_public(&module.vis));
            let folder = folder.join(&name);
            let child = match &module.content {
                Some((_, items)) => self.add(items.clone(), Some(id), &folder),
                None => {
                    let beside = folder.with_extension("rs");
                    let path = if beside.is_file() { beside } else { folder.join("mod.rs") };
                    self.add(parsed(&path).items, Some(id), &folder)
                }
            };
            self.modules[id].children.insert(name, (child, public));
        }
        self.modules[id].items = kept;
        id
    }

    /// What a module offers to others, by name.
    pub fn exports(&self, id: ModuleId) -> BTreeMap<String, Target> {
        let mut names = BTreeMap::new();
        let module = self.module(id);
        for (name, &(child, public)) in &module.children {
            if public {
                names.insert(name.clone(), Target::Module(child));
            }
        }
        for (at, item) in module.items.iter().enumerate() {
            match item {
                Item::Use(import) if is_public(&import.vis) => self.import(id, &import.tree, &mut names),
                _ => {
                    if let Some(name) = public_name(item) {
                        names.insert(name, Target::Item(id, at));
                    }
                }
            }
        }
        names
    }

    /// Names at the root that are no modules.
    pub fn names_at_the_root(&self) -> Vec<String> {
        let items = |(name, target)| matches!(target, Target::Item(..)).then_some(name);
        self.exports(0).into_iter().filter_map(items).collect()
    }

    /// What a path of names means in a module; nothing if it leads out of the crate.
    pub fn resolve(&self, from: ModuleId, path: &[String]) -> Option<Target> {
        self.follow(from, path, &mut Vec::new())
    }

    /// [`Krate::resolve`], on the way to names that are being looked for already.
    fn follow(
        &self,
        from: ModuleId,
        path: &[String],
        sought: &mut Vec<(ModuleId, String)>,
    ) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let parent = || self.module(from).parent;
        let start = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(parent()?),
            name => self.local(from, name, sought)?,
        };
        match (start, rest) {
            (found, []) => Some(found),
            (Target::Module(id), rest) => self.follow(id, rest, sought),
            _ => None,
        }
    }

    /// A name as it is known within a module.
    fn local(&self, id: ModuleId, name: &str, sought: &mut Vec<(ModuleId, String)>) -> Option<Target> {
        let this = (id, name.to_owned());
        if sought.contains(&this) {
            // A `use` whose path begins with another crate's name.
            return None;
        }
        sought.push(this);
        let found = self.declared_or_imported(id, name, sought);
        sought.pop();
        found
    }

    fn declared_or_imported(
        &self,
        id: ModuleId,
        name: &str,
        sought: &mut Vec<(ModuleId, String)>,
    ) -> Option<Target> {
        let module = self.module(id);
        if let Some(&(child, _)) = module.children.get(name) {
            return Some(Target::Module(child));
        }
        let declared = module.items.iter().position(|item| declared_name(item).is_some_and(|n| n == name));
        if let Some(at) = declared {
            return Some(Target::Item(id, at));
        }
        module.items.iter().find_map(|item| {
            let Item::Use(import) = item else { return None };
            let mut found = Vec::new();
            flatten(&import.tree, &mut Vec::new(), &mut found);
            found.into_iter().find_map(|(path, known_as)| match known_as {
                Some(known_as) if known_as == name => self.follow(id, &path, sought),
                None => match self.follow(id, &path, sought)? {
                    Target::Module(of) if of != id => self.exports(of).get(name).copied(),
                    _ => None,
                },
                _ => None,
            })
        })
    }

    /// The names that a `use` brings, if they are this crate's.
    fn import(&self, id: ModuleId, tree: &UseTree, names: &mut BTreeMap<String, Target>) {
        let mut found = Vec::new();
        flatten(tree, &mut Vec::new(), &mut found);
        for (path, known_as) in found {
            match (known_as, self.resolve(id, &path)) {
                (Some(name), Some(target)) => drop(names.insert(name, target)),
                (None, Some(Target::Module(of))) => names.extend(self.exports(of)),
                _ => {}
            }
        }
    }
}

/// Paths of a `use` tree with the name that each is known as; none for a glob.
fn flatten(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Option<String>)>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, found)),
        UseTree::Glob(_) => found.push((path.clone(), None)),
        UseTree::Name(name) if name.ident == "self" => found.push((path.clone(), path.last().cloned())),
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            found.push(([&path[..], std::slice::from_ref(&name)].concat(), Some(name)));
        }
        UseTree::Rename(renamed) => {
            let whole = [&path[..], &[renamed.ident.to_string()]].concat();
            found.push((whole, Some(renamed.rename.to_string())));
        }
    }
}

fn parsed(path: &Path) -> syn::File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of an item that can be named, with its visibility.
fn named(item: &Item) -> Option<(String, &Visibility)> {
    let (name, visibility) = match item {
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        Item::Union(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((name.to_string(), visibility))
}

fn declared_name(item: &Item) -> Option<String> {
    named(item).map(|(name, _)| name)
}

fn public_name(item: &Item) -> Option<String> {
    named(item).and_then(|(name, visibility)| is_public(visibility).then_some(name))
}
