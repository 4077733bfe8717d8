//! A line for each public item, as a reader of the documentation would see it.

use super::krate::{Krate, ModuleId, Target, is_public};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::collections::{BTreeMap, BTreeSet};
use syn::punctuated::Punctuated;
use syn::{
    Fields, FnArg, ImplItem, Item, ItemImpl, Meta, Pat, PatType, Path, Signature, Token, TraitItem, Type,
};

/// Lines of all that can be named from outside, sorted. An item with several paths has its members under the
/// shortest.
pub fn public(krate: &Krate, name: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut paths: BTreeMap<Target, Vec<String>> = BTreeMap::new();
    collect(krate, 0, name, &mut paths, &mut lines);
    let mut first = BTreeMap::new();
    for (target, mut names) in paths {
        names.sort_by_key(|path| (path.matches("::").count(), path.clone()));
        let (path, others) = names.split_first().expect("it was found by a path");
        lines.extend(others.iter().map(|other| format!("use {other} = {path}")));
        if let Target::Item(module, at) = target {
            item(&krate.module(module).items[at], path, &mut lines);
        }
        first.insert(target, path.clone());
    }
    let mut implemented: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for (target, path) in &first {
        if let Target::Item(module, at) = target {
            implemented.entry(path).or_default().extend(derived(&krate.module(*module).items[*at]));
        }
    }
    for (module, block) in krate.impls() {
        let Some(path) = self_type(krate, module, &block.self_ty).and_then(|target| first.get(&target))
        else {
            continue;
        };
        match &block.trait_ {
            Some((_, of, _)) => drop(implemented.entry(path).or_default().insert(text(of))),
            None => members(block, path, &mut lines),
        }
    }
    for (path, traits) in implemented.iter().filter(|(_, traits)| !traits.is_empty()) {
        lines.insert(format!("impl {path}: {}", traits.iter().cloned().collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn collect(
    krate: &Krate,
    module: ModuleId,
    path: &str,
    paths: &mut BTreeMap<Target, Vec<String>>,
    lines: &mut BTreeSet<String>,
) {
    for (name, target) in krate.exports(module) {
        let path = format!("{path}::{name}");
        paths.entry(target).or_default().push(path.clone());
        if let Target::Module(inner) = target {
            lines.insert(format!("mod {path}"));
            collect(krate, inner, &path, paths, lines);
        }
    }
}

fn self_type(krate: &Krate, module: ModuleId, of: &Type) -> Option<Target> {
    let Type::Path(of) = of else { return None };
    let names: Vec<String> = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    krate.resolve(module, &names)
}

fn item(item: &Item, path: &str, lines: &mut BTreeSet<String>) {
    let line = match item {
        Item::Const(item) => format!("const {path}: {}", text(&item.ty)),
        Item::Static(item) => format!("static {path}: {}", text(&item.ty)),
        Item::Fn(item) => function(&item.sig, path),
        Item::Type(item) => format!("type {path}{} = {}", text(&item.generics), text(&item.ty)),
        Item::Struct(item) => {
            let shown = match &item.fields {
                Fields::Named(fields) => {
                    for field in fields.named.iter().filter(|field| is_public(&field.vis)) {
                        let name = field.ident.as_ref().expect("a named field");
                        lines.insert(format!("field {path}::{name}: {}", text(&field.ty)));
                    }
                    let hidden = fields.named.iter().any(|field| !is_public(&field.vis));
                    if hidden { " { .. }".into() } else { String::new() }
                }
                Fields::Unnamed(fields) => {
                    let one = |field: &syn::Field| match is_public(&field.vis) {
                        true => text(&field.ty),
                        false => "_".into(),
                    };
                    format!("({})", fields.unnamed.iter().map(one).collect::<Vec<_>>().join(", "))
                }
                Fields::Unit => String::new(),
            };
            format!("{}struct {path}{}{shown}", exhaustive(&item.attrs), text(&item.generics))
        }
        Item::Enum(item) => {
            for variant in &item.variants {
                lines.insert(format!("variant {path}::{}{}", variant.ident, fields(&variant.fields)));
            }
            format!("{}enum {path}{}", exhaustive(&item.attrs), text(&item.generics))
        }
        Item::Trait(item) => {
            for member in &item.items {
                lines.insert(match member {
                    TraitItem::Const(member) => {
                        format!("const {} {path}::{}", text(&member.ty), member.ident)
                    }
                    TraitItem::Fn(member) => {
                        let provided = if member.default.is_some() { " (provided)" } else { "" };
                        function(&member.sig, &format!("{path}::{}", member.sig.ident)) + provided
                    }
                    TraitItem::Type(member) => format!("type {path}::{}", member.ident),
                    other => format!("in {path}: {}", text(other)),
                });
            }
            let supertraits = &item.supertraits;
            let above =
                if supertraits.is_empty() { String::new() } else { format!(": {}", text(supertraits)) };
            format!("trait {path}{}{above}", text(&item.generics))
        }
        other => format!("in {path}: {}", text(other)),
    };
    lines.insert(line);
}

/// The fields of a variant: all of them are public.
fn fields(fields: &Fields) -> String {
    match fields {
        Fields::Unit => String::new(),
        Fields::Unnamed(fields) => {
            let types: Vec<String> = fields.unnamed.iter().map(|field| text(&field.ty)).collect();
            format!("({})", types.join(", "))
        }
        Fields::Named(fields) => {
            let one = |field: &syn::Field| format!("{}: {}", text(&field.ident), text(&field.ty));
            format!(" {{ {} }}", fields.named.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

fn exhaustive(attributes: &[syn::Attribute]) -> &'static str {
    let open = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
    if open { "#[non_exhaustive] " } else { "" }
}

/// The traits that an item derives.
fn derived(item: &Item) -> Vec<String> {
    let attributes = match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => return Vec::new(),
    };
    let lists = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => Some(list),
        _ => None,
    });
    let traits = lists.flat_map(|list| {
        list.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).expect("a list of traits")
    });
    traits.map(|of| of.segments.last().expect("a name").ident.to_string()).collect()
}

/// Public members of an inherent impl block.
fn members(block: &ItemImpl, path: &str, lines: &mut BTreeSet<String>) {
    for member in &block.items {
        match member {
            ImplItem::Fn(member) if is_public(&member.vis) => {
                lines.insert(function(&member.sig, &format!("{path}::{}", member.sig.ident)));
            }
            ImplItem::Const(member) if is_public(&member.vis) => {
                lines.insert(format!("const {path}::{}: {}", member.ident, text(&member.ty)));
            }
            _ => {}
        }
    }
}

/// A signature with the function's whole path.
fn function(signature: &Signature, path: &str) -> String {
    let Signature { constness, unsafety, abi, generics, inputs, output, .. } = signature;
    let before = text(&quote!(#constness #unsafety #abi));
    let before = if before.is_empty() { before } else { before + " " };
    let condition = &generics.where_clause;
    // Whether a parameter may be changed inside is no business of the caller.
    let mut inputs = inputs.clone();
    for input in &mut inputs {
        if let FnArg::Typed(PatType { pat, .. }) = input
            && let Pat::Ident(name) = &mut **pat
        {
            name.mutability = None;
        }
    }
    let inputs: Vec<String> = inputs.iter().map(text).collect();
    let after = text(&quote!(#output #condition)).trim_end_matches(',').to_owned();
    let space = if after.is_empty() { "" } else { " " };
    format!("{before}fn {path}{}({}){space}{after}", text(generics), inputs.join(", "))
}

/// Tokens as they would be written.
fn text(tokens: &impl ToTokens) -> String {
    let tokens: TokenStream = tokens.to_token_stream();
    let spaced: String = tokens.to_string();
    let mut line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    for (spaced, written) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("->", "\u{1}"),
        (" \u{1}", "\u{1}"),
        ("& ", "&"),
        ("* ", "*"),
        (" ,", ","),
        (" :", ":"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
        (" ;", ";"),
        ("? ", "?"),
        (",)", ")"),
        (",>", ">"),
        ("\u{1}", " ->"),
        ("->(", "-> ("),
        (":(", ": ("),
        (",(", ", ("),
        ("=(", "= ("),
        ("mut(", "mut ("),
        ("dyn(", "dyn ("),
    ] {
        line = line.replace(spaced, written);
    }
    line.trim().to_owned()
}
