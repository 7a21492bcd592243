//! Prints what a client sees, a JSON object a line, as tests/support/clients/programs.py reads it.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::json;

/// A record as a consumer sees it. The kind is 1 for a producer's timestamp, 2 for the broker's.
pub struct Record<'a> {
    pub partition: i32,
    pub offset: i64,
    pub kind: i32,
    pub time: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

impl Record<'_> {
    /// Print the record.
    pub fn tell(&self) {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| json!({"name": name, "value": text(*value)}))
            .collect();
        println!(
            "{}",
            json!({
                "partition": self.partition,
                "offset": self.offset,
                "kind": self.kind,
                "time": self.time,
                "key": text(self.key),
                "value": text(self.value),
                "headers": headers,
            })
        );
    }
}

fn text(octets: Option<&[u8]>) -> Option<String> {
    octets.map(|octets| BASE64_STANDARD.encode(octets))
}
