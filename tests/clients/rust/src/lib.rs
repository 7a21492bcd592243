//! Prints what a client sees, a JSON object a line, as tests/support/clients/programs.py reads it.

use base64::{engine::general_purpose::STANDARD, Engine};
use serde_json::{json, Value};

/// A record as a consumer sees it. `kind` is 1 for a producer's timestamp, 2 for the broker's, 0 if it isn't shown.
pub struct Record<'a> {
    pub partition: i32,
    pub offset: i64,
    pub kind: i32,
    pub time: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

fn octets(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| Value::String(STANDARD.encode(bytes)))
}

/// Prints a record.
pub fn tell(record: Record) {
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| json!({"name": name, "value": octets(*value)}))
        .collect();
    println!(
        "{}",
        json!({
            "partition": record.partition,
            "offset": record.offset,
            "kind": record.kind,
            "time": record.time,
            "key": octets(record.key),
            "value": octets(record.value),
            "headers": headers,
        })
    );
}
