//! The numbers in a tree of structures, read from their source: path, type, meaning.
//!
//! What it is not: a compiler. It knows the few shapes that a status has: numbers, options, lists,
//! and structures of these; whatever else is no number.

use std::collections::BTreeMap;

use syn::{Attribute, Expr, Field, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type};

const NUMBERS: [&str; 7] = ["u8", "u16", "u32", "u64", "i64", "usize", "f64"];

/// One number, as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Such as `groups[].server.restarts`.
    pub(super) path: String,
    /// Its documentation, in one line.
    pub(super) text: String,
    /// It may be missing.
    pub(super) is_optional: bool,
}

struct Known {
    /// As JSON names it.
    name: String,
    ty: Type,
    text: String,
    /// Its fields are the structure's own.
    is_flat: bool,
}

/// All structures that were read, by name.
#[derive(Default)]
pub(super) struct Structs(BTreeMap<String, Vec<Known>>);

impl Structs {
    /// Adds those of one file.
    pub(super) fn read(&mut self, text: &str) -> Result<(), String> {
        let file = syn::parse_file(text).map_err(|error| error.to_string())?;
        for item in file.items {
            let Item::Struct(item) = item else { continue };
            let Fields::Named(fields) = item.fields else { continue };
            let fields = fields.named.into_iter().map(known).collect();
            self.0.insert(item.ident.to_string(), fields);
        }
        Ok(())
    }

    /// Every number below the structure `root`, in the order of the source.
    pub(super) fn numbers(&self, root: &str) -> Result<Vec<Number>, String> {
        let mut numbers = Vec::new();
        self.walk(root, "", &mut numbers)?;
        Ok(numbers)
    }

    fn walk(&self, owner: &str, before: &str, numbers: &mut Vec<Number>) -> Result<(), String> {
        let fields = self.0.get(owner).ok_or_else(|| format!("no structure {owner}"))?;
        for field in fields {
            let mut path = match (before, field.is_flat) {
                (_, true) => before.to_owned(),
                ("", false) => field.name.clone(),
                (before, false) => format!("{before}.{}", field.name),
            };
            let mut ty = &field.ty;
            let mut is_optional = false;
            while let Some((outer, inner)) = generic(ty) {
                is_optional |= outer == "Option";
                path.push_str(if outer == "Vec" { "[]" } else { "" });
                ty = inner;
            }
            let name = name_of(ty);
            if NUMBERS.contains(&name.as_str()) {
                numbers.push(Number { path, text: field.text.clone(), is_optional });
            } else if self.0.contains_key(&name) {
                self.walk(&name, &path, numbers)?;
            }
        }
        Ok(())
    }
}

fn known(field: Field) -> Known {
    let own = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let serde = field.attrs.iter().filter(|it| it.path().is_ident("serde"));
    let words: Vec<String> = serde
        .filter_map(|it| it.meta.require_list().ok())
        .map(|it| it.tokens.to_string())
        .collect();
    let renamed = words.iter().find_map(|it| it.split_once("rename = \"")?.1.split('"').next());
    Known {
        name: renamed.map_or(own, str::to_owned),
        text: documentation(&field.attrs),
        is_flat: words.iter().any(|it| it.contains("flatten")),
        ty: field.ty,
    }
}

fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|it| it.path().is_ident("doc")).filter_map(|it| {
        let Meta::NameValue(pair) = &it.meta else { return None };
        let Expr::Lit(literal) = &pair.value else { return None };
        let Lit::Str(text) = &literal.lit else { return None };
        Some(text.value().trim().to_owned())
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// `Option<T>` and `Vec<T>`: which, and `T`.
fn generic(ty: &Type) -> Option<(String, &Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let GenericArgument::Type(inner) = arguments.args.first()? else { return None };
    Some((last.ident.to_string(), inner))
}

fn name_of(ty: &Type) -> String {
    let Type::Path(path) = ty else { return String::new() };
    path.path.segments.last().map(|it| it.ident.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_through_options_lists_and_structures() {
        let mut structs = Structs::default();
        let text = "struct Status { /// A.\n/// B.\n pub a_ms: u64, pub word: String, \
                    #[serde(default, rename = \"list\")] pub many: Vec<Inner>, \
                    #[serde(flatten)] pub flat: Inner }\
                    struct Inner { #[serde(default)] pub deep: Option<Vec<f64>>, pub is: bool }";
        structs.read(text).unwrap();
        let numbers = structs.numbers("Status").unwrap();
        let paths: Vec<&str> = numbers.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["a_ms", "list[].deep[]", "deep[]"]);
        assert_eq!((numbers[0].text.as_str(), numbers[0].is_optional), ("A. B.", false));
        assert!(numbers[1].is_optional);
    }
}
