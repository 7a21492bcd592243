// protobuf-es, by reflection over a descriptor set.
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { each } from "./frames.mjs";

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2])));
each((name, data) => {
  const type = registry.getMessage(name);
  return toBinary(type, fromBinary(type, data));
});
