// Reads messages, a length and a type name and bytes each, and writes them as prost does; it has no groups.
use prost::Message;
use std::io::{Read, Write};

mod producers {
    include!(concat!(env!("OUT_DIR"), "/producers.rs"));
}

fn again<M: Message + Default>(data: &[u8]) -> Vec<u8> {
    M::decode(data).unwrap().encode_to_vec()
}

fn main() {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let mut rest = &input[..];
    let mut read = || {
        let size = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        let (data, after) = rest[4..].split_at(size);
        rest = after;
        (data, after.is_empty())
    };
    let mut output = Vec::new();
    let mut done = input.is_empty();
    while !done {
        let (name, _) = read();
        let (data, last) = read();
        done = last;
        let written = match name {
            b"producers.Order" => again::<producers::Order>(data),
            b"producers.OldOrder" => again::<producers::OldOrder>(data),
            b"producers.Scattered" => again::<producers::Scattered>(data),
            _ => panic!("unknown message"),
        };
        output.extend((written.len() as u32).to_le_bytes());
        output.extend(written);
    }
    std::io::stdout().write_all(&output).unwrap();
}
