// protobufjs, the message made from a plain object with every scalar set, as applications make them.
import { Root } from "protobufjs";
import { each } from "./frames.mjs";

const root = new Root();
root.resolvePath = (_, target) => (target.startsWith("google/") ? target : `${process.argv[2]}/${target}`);
root.loadSync(["order.proto", "claim.proto"], { keepCase: true });
const defaults = process.argv[3] === "defaults";
each((name, data) => {
  const type = root.lookupType(name);
  const message = type.decode(data);
  if (!defaults) return type.encode(message).finish();
  return type.encode(type.fromObject(type.toObject(message, { defaults, oneofs: false }))).finish();
});
