fn main() {
    prost_build::compile_protos(&["../order.proto"], &[".."]).unwrap();
}
