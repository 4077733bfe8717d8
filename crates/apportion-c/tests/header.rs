//! The header, the Rust functions, the Fortran module and the shared library declare the same functions.

#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

use std::collections::BTreeMap;
use std::path::Path;

/// Types of the arguments, and of the result, in the words of the header.
type Signatures = BTreeMap<String, (Vec<String>, String)>;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text without what is between two marks.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(begin) {
        kept += before;
        kept.push(' ');
        rest = after.split_once(end).expect("a comment ends").1;
    }
    kept + rest
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `const double *work` is `const double *`.
fn type_of(argument: &str) -> String {
    let argument = words(argument);
    let name = argument.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).expect("a type and a name") + 1;
    words(&argument[..name].replace('*', " * "))
}

fn header() -> Signatures {
    let text = without(&read("include/apportion.h"), "/*", "*/");
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let mut found = Signatures::new();
    for statement in code.split(';') {
        let Some((head, arguments)) = statement.split_once('(') else { continue };
        let head = words(head.rsplit('{').next().unwrap());
        let name = head.rsplit([' ', '*']).next().unwrap().to_owned();
        let result = words(&head[..head.len() - name.len()].replace('*', " * "));
        let arguments = arguments.trim_end().strip_suffix(')').expect("a list of arguments ends");
        let types = match words(arguments).as_str() {
            "void" => Vec::new(),
            _ => arguments.split(',').map(type_of).collect(),
        };
        assert!(found.insert(name, (types, result)).is_none(), "{head} is declared twice");
    }
    found
}

/// A type of Rust in the words of the header.
fn in_c(rust: &str) -> String {
    let rust = words(rust);
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(inner));
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        return format!("const {} *", in_c(inner));
    }
    match rust.as_str() {
        "i64" => "int64_t",
        "i32" => "int32_t",
        "f64" => "double",
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "Models" => "apportion_models",
        "Balanced" => "apportion_balancer",
        "Layout" => "apportion_layout",
        "Product" => "apportion_product",
        "Advection" => "apportion_advection",
        "Factorisation" => "apportion_factorisation",
        "Adopted" => "apportion_world",
        other => panic!("{other} is no type of the header"),
    }
    .to_owned()
}

fn rust() -> Signatures {
    let mut found = Signatures::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let signature = words(part.split('{').next().unwrap());
            let rest = signature.split_once("extern \"C\" fn ").expect("a C function").1;
            let (name, rest) = rest.split_once('(').unwrap();
            let (arguments, result) = rest.rsplit_once(')').unwrap();
            let types = arguments
                .split(',')
                .filter(|argument| !argument.trim().is_empty())
                .map(|argument| in_c(argument.split_once(':').expect("an argument has a type").1))
                .collect();
            let result = result.trim().strip_prefix("->").map_or("void".to_owned(), in_c);
            found.insert(name.to_owned(), (types, result));
        }
    }
    found
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let (header, rust) = (header(), rust());
    assert!(header.len() > 15 && header.keys().all(|name| name.starts_with("apportion_")));
    let names = |of: &Signatures| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&header), names(&rust));
    for (name, signature) in &header {
        assert_eq!(signature, &rust[name], "{name}");
    }
}

/// Arguments of each function of the Fortran module, by number and by kind.
#[test]
fn the_fortran_module_declares_the_same() {
    let text: String = read("fortran/apportion.f90")
        .lines()
        .map(|line| line.split('!').next().unwrap().trim_end().to_owned() + "\n")
        .collect();
    let text = text.replace("&\n", " ");
    let interface = text.split_once("interface\n").unwrap().1.split_once("end interface").unwrap().0;
    let header = header();
    let mut found = Vec::new();
    for block in interface.split("bind(C, name=\"").skip(1) {
        let name = block.split('"').next().unwrap();
        if name == "strlen" {
            continue;
        }
        let before = text.split(&format!("bind(C, name=\"{name}\"")).next().unwrap();
        let list = before.rsplit_once('(').unwrap().1.split(')').next().unwrap();
        let arguments: Vec<String> =
            list.split(',').map(words).filter(|argument| !argument.is_empty()).collect();
        let (types, _) = &header[name];
        assert_eq!(arguments.len(), types.len(), "{name}");
        let body = block.split("end ").next().unwrap();
        for (argument, c) in arguments.iter().zip(types) {
            let declared = body.lines().find(|line| {
                let Some((_, names)) = line.split_once("::") else { return false };
                // Without the extent of an array.
                let names = names.replace("(5, *)", "").replace("(*)", "");
                names.split(',').any(|name| name.trim() == argument)
            });
            let declared = declared.unwrap_or_else(|| panic!("{name}: {argument} is not declared"));
            let kind = match c.trim_start_matches("const ") {
                "int64_t" | "int64_t *" => "integer(c_int64_t)",
                "int32_t *" => "integer(c_int32_t)",
                "double" | "double *" => "real(c_double)",
                "int" | "int *" => "integer(c_int)",
                "char *" => "character(kind=c_char)",
                _ => "type(c_ptr)",
            };
            assert!(declared.trim().starts_with(kind), "{name}: {argument} is {c}, but {declared}");
            // What C takes as it is, and opaque pointers, are passed by value.
            let by_value =
                !c.ends_with('*') || c.ends_with("void *") || c.contains("apportion_") && !c.ends_with("* *");
            assert_eq!(declared.contains("value"), by_value, "{name}: {argument}: {declared}");
        }
        found.push(name.to_owned());
    }
    found.sort();
    assert_eq!(found, header.keys().cloned().collect::<Vec<_>>());
}

/// The header has the version of the package.
#[test]
fn the_version_of_the_header_is_that_of_the_library() {
    let header = read("include/apportion.h");
    let version = env!("CARGO_PKG_VERSION");
    assert!(header.contains(&format!("#define APPORTION_VERSION \"{version}\"\n")));
    for (part, number) in ["MAJOR", "MINOR", "PATCH"].iter().zip(version.split('.')) {
        assert!(header.contains(&format!("#define APPORTION_VERSION_{part} {number}\n")), "{part}");
    }
}

/// The numbers of the header are those of the module and of the code.
#[test]
fn constants_agree() {
    let (header, module) = (read("include/apportion.h"), read("fortran/apportion.f90"));
    let mut count = 0;
    for line in header.lines().filter_map(|line| line.strip_prefix("#define APPORTION_")) {
        let mut parts = line.split_whitespace();
        let (Some(name), Some(number)) = (parts.next(), parts.next()) else { continue };
        if number.parse::<u32>().is_ok() {
            let stated = format!("APPORTION_{name} = {number}");
            assert!(module.contains(&stated), "{stated}");
            count += 1;
        }
    }
    assert_eq!(count, 16);
}
