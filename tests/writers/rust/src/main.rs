//! Reads each value by its schema and writes it again: writers LIBRARY. Framed as tests/java/AvroJudge.java says.

use std::error::Error;
use std::io::{stdin, stdout, Read, Write};

use apache_avro::{from_avro_datum, to_avro_datum, Schema};

type Written = Result<Vec<u8>, Box<dyn Error>>;

fn number() -> usize {
    let mut size = [0; 4];
    stdin().read_exact(&mut size).unwrap();
    u32::from_be_bytes(size) as usize
}

fn frame() -> Vec<u8> {
    let mut data = vec![0; number()];
    stdin().read_exact(&mut data).unwrap();
    data
}

fn avro(schema: &Result<Schema, apache_avro::Error>, value: &[u8]) -> Written {
    let schema = schema.as_ref().map_err(|error| error.to_string())?;
    let datum = from_avro_datum(schema, &mut &value[..], None)?;
    Ok(to_avro_datum(schema, datum)?)
}

fn json(value: &[u8], indented: bool) -> Written {
    let value: serde_json::Value = serde_json::from_slice(value)?;
    Ok(if indented { serde_json::to_vec_pretty(&value)? } else { serde_json::to_vec(&value)? })
}

fn main() {
    let library = std::env::args().nth(1).unwrap();
    for _ in 0..number() {
        let text = String::from_utf8(frame()).unwrap();
        let schema = if library == "apache-avro" { Schema::parse_str(&text) } else { Ok(Schema::Null) };
        for _ in 0..number() {
            let value = frame();
            let written = match library.as_str() {
                "apache-avro" => avro(&schema, &value),
                "serde_json" => json(&value, false),
                _ => json(&value, true),
            };
            let size = written.as_ref().map_or(-1, |data| data.len() as i32);
            stdout().write_all(&size.to_be_bytes()).unwrap();
            match written {
                Ok(data) => stdout().write_all(&data).unwrap(),
                Err(error) => eprintln!("{library} refuses: {error}"),
            }
        }
    }
}
