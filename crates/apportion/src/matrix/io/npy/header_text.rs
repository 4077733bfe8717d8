//! The text of an `.npy` header: a Python dictionary of three entries.
//!
//! Source: NumPy's NEP 1, "A simple file format for NumPy arrays".

/// The fields of a header's text.
#[derive(Debug, PartialEq)]
pub(super) struct HeaderText<'a> {
    /// The element type, such as `<f8`; `None` for a structure.
    pub descr: Option<&'a str>,
    pub fortran: bool,
    pub shape: Vec<u64>,
}

/// Parses a header's text in one pass, and rejects anything that NumPy does not write. O(length).
pub(super) fn parse(text: &[u8]) -> Result<HeaderText<'_>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its header is not UTF-8 text".to_owned())?;
    let mut cursor = Cursor { rest: text };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    cursor.expect('{')?;
    while !cursor.takes('}') {
        let key = cursor.quoted()?;
        cursor.expect(':')?;
        let first = match key {
            "descr" if cursor.comes('[') => {
                // Its names and types do not matter: structures are rejected.
                return Ok(HeaderText { descr: None, fortran: false, shape: Vec::new() });
            }
            "descr" => descr.replace(cursor.quoted()?).is_none(),
            "fortran_order" => fortran.replace(cursor.truth()?).is_none(),
            "shape" => shape.replace(cursor.sizes()?).is_none(),
            _ => return Err(format!("its header has the unknown entry {key:?}")),
        };
        if !first {
            return Err(format!("its header has two entries {key:?}"));
        }
        if !cursor.takes(',') && !cursor.comes('}') {
            return Err(cursor.unexpected("',' or '}'"));
        }
    }
    if !cursor.rest.trim().is_empty() {
        return Err(cursor.unexpected("its end"));
    }
    let missing = |name: &str| format!("its header has no entry '{name}'");
    Ok(HeaderText {
        descr: Some(descr.ok_or_else(|| missing("descr"))?),
        fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

/// The rest of the text.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// True if the next character, ignoring spaces, is this one.
    fn comes(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(c)
    }

    /// The same, and consumes it.
    fn takes(&mut self, c: char) -> bool {
        let comes = self.comes(c);
        if comes {
            self.rest = &self.rest[c.len_utf8()..];
        }
        comes
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.takes(c) { Ok(()) } else { Err(self.unexpected(&format!("{c:?}"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.rest.trim_start().chars().next() {
            Some(found) => format!("its header holds {found:?} where {wanted} is expected"),
            None => format!("its header ends where {wanted} is expected"),
        }
    }

    /// A text in quotes, without escapes. Python 2 may write `u` before it.
    fn quoted(&mut self) -> Result<&'a str, String> {
        self.takes('u');
        let quote = if self.comes('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (text, rest) = self.rest.split_once(quote).ok_or("a text in its header does not end")?;
        if text.contains('\\') {
            return Err("its header holds a backslash".into());
        }
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    /// A tuple of sizes.
    fn sizes(&mut self) -> Result<Vec<u64>, String> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.takes(')') {
            if self.comes('-') {
                return Err("its header holds a negative size".into());
            }
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            if digits.is_empty() {
                return Err(self.unexpected("a size"));
            }
            if digits.len() > 1 && digits.starts_with('0') {
                return Err(format!("the size {digits} in its header begins with a zero"));
            }
            sizes.push(digits.parse().map_err(|_| format!("the size {digits} in its header is too large"))?);
            // Python 2 ends long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.takes(',') && !self.comes(')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_order_and_either_quote() {
        let wanted = HeaderText { descr: Some("<f8"), fortran: true, shape: vec![2, 3] };
        for text in [
            "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }   \n",
            "{'shape':(2,3,),\"descr\":\"<f8\",'fortran_order':True}",
            "{u'descr': u'<f8', 'fortran_order': True, 'shape': (2L, 3L), }",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), wanted);
        }
        let shape = |text: &str| {
            parse(format!("{{'descr': '|b1', 'fortran_order': False, 'shape': {text}}}").as_bytes())
                .map(|header| header.shape)
        };
        assert_eq!((shape("()"), shape("(7,)")), (Ok(vec![]), Ok(vec![7])));
        for bad in [
            "(2 3)",
            "(,)",
            "(2",
            "2",
            "(0x2, 3)",
            "(18446744073709551616, 1)",
            "(-1, 2)",
            "(07, 5)",
            "(L, 5)",
            "(7LL, 5)",
            "(7l, 5)",
            "[7, 5]",
        ] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// Any text is parsed or rejected, in time proportional to its length.
        #[test]
        fn no_text_panics(text in r#"\{?('descr'|'shape'|'fortran_order'|[:,] ?|[\[\](){}]|True|False|'<f[48]'|"|[0-9]{1,21}|é|\\|\PC){0,40}\}?"#) {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn what_is_written_is_read(
            descr in "[<>|=][a-z][0-9]{1,2}", fortran: bool, shape in prop::collection::vec(any::<u64>(), 0..4),
        ) {
            let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
            let truth = if fortran { "True" } else { "False" };
            let text = format!("{{'descr': '{descr}', 'fortran_order': {truth}, 'shape': ({sizes}), }}\n");
            let wanted = HeaderText { descr: Some(&descr), fortran, shape };
            prop_assert_eq!(parse(text.as_bytes()).unwrap(), wanted);
        }
    }
}
