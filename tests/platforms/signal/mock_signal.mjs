// Signal's own mock server, with what signal-cli 0.13.19 needs besides, driven by JSON lines:
// `node mock_signal.mjs <folder with node_modules> <empty folder>`. It ends when its input does.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const [packages, cdnFolder] = process.argv.slice(2);
const root = path.join(packages, "node_modules/@signalapp/mock-server");
const require = createRequire(path.join(packages, "package.json"));
const { Server, Proto } = require("@signalapp/mock-server");
const { Connection } = require(path.join(root, "src/server/ws/connection.js"));
const { Router } = require(path.join(root, "src/server/ws/router.js"));
const Long = require("long");
const crypto = require(path.join(root, "src/crypto.js"));
const schemas = require(path.join(root, "src/data/schemas.js"));
const { ServiceIdKind, untagPni } = require(path.join(root, "src/types.js"));

// signal-cli refuses envelopes without these.
const encodeEnvelope = Proto.Envelope.encode.bind(Proto.Envelope);
Proto.Envelope.encode = (envelope, writer) =>
  encodeEnvelope(
    {
      ...envelope,
      serverGuid: envelope.serverGuid || globalThis.crypto.randomUUID(),
      serverTimestamp: envelope.serverTimestamp || envelope.timestamp,
    },
    writer,
  );

// signal-cli does not answer these requests, so nothing may wait for an answer.
Connection.prototype.handleProvision = async function handleProvision(id) {
  void this.send("PUT", "/v1/address", { body: Proto.ProvisioningUuid.encode({ uuid: id }).finish() });
  const { envelope } = await this.server.getProvisioningResponse(id);
  void this.send("PUT", "/v1/message", { body: envelope });
};

let device = null; // signal-cli, as soon as it is linked
let noteLinked = null;
let group = null;
let isUnlinked = false;
const listDevices = () => [
  { id: 1, name: null, created: 1700000000000, lastSeen: Date.now() },
  { id: device?.deviceId, name: null, created: Date.now(), lastSeen: Date.now() },
];
const runRoute = Router.prototype.run;
Router.prototype.run = async function run(request) {
  if (request.verb === "GET" && /^\/v1\/devices\/?$/.test(request.path)) {
    const body = Buffer.from(JSON.stringify({ devices: listDevices() }));
    return { status: 200, headers: ["Content-Type:application/json"], body };
  }
  // The mock does not know the first, and does not understand signal-cli's form of the second.
  if (request.verb === "PUT" && /^\/v1\/accounts\/attributes|^\/v2\/keys/.test(request.path)) {
    return { status: isUnlinked ? 403 : 200, headers: ["Content-Type:application/json"], body: Buffer.from("{}") };
  }
  const response = await runRoute.call(this, request).catch((error) => {
    console.error("failed:", request.verb, request.path, error.message);
    throw error;
  });
  if (response.status === 404) console.error("not found:", request.verb, request.path);
  return response;
};

const read = (name) => fs.readFileSync(path.join(root, "certs", name));
const server = new Server({
  trustRoot: JSON.parse(read("trust-root.json")),
  zkParams: JSON.parse(read("zk-params.json")),
  https: { key: read("key.pem"), cert: read("full-cert.pem"), allowHTTP1: true },
  cdn3Path: cdnFolder,
});
await server.listen(0, "127.0.0.1");

// Over HTTP, the mock knows no request to link a device.
const linkDevice = async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const data = schemas.AtomicLinkingDataSchema.parse(JSON.parse(Buffer.concat(chunks)));
  const credentials = Buffer.from(request.headers.authorization.split(" ")[1], "base64").toString();
  const [number, password] = credentials.split(/:(.*)/s);
  const { registrationId, pniRegistrationId } = data.accountAttributes;
  const provisioningCode = data.verificationCode;
  const linked = await server.provisionDevice({ number, password, provisioningCode, registrationId, pniRegistrationId });
  for (const [kind, prefix] of [
    [ServiceIdKind.ACI, "aci"],
    [ServiceIdKind.PNI, "pni"],
  ]) {
    await server.updateDeviceKeys(linked, kind, {
      lastResortKey: crypto.decodeKyberPreKey(data[`${prefix}PqLastResortPreKey`]),
      signedPreKey: crypto.decodeSignedPreKey(data[`${prefix}SignedPreKey`]),
    });
  }
  // Without a session of their own, people could only answer what signal-cli has sent them before.
  for (const person of [alice, owner]) await person.addSingleUseKey(linked, await linked.popSingleUseKey());
  device = linked;
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ deviceId: linked.deviceId, uuid: linked.aci, pni: untagPni(linked.pni) }));
  noteLinked?.(linked);
};
const handlers = server.https.listeners("request").slice();
server.https.removeAllListeners("request");
server.https.on("request", (request, response) => {
  if (request.method === "PUT" && request.url === "/v1/devices/link") {
    linkDevice(request, response).catch((error) => {
      response.writeHead(500);
      response.end();
      say({ error: error.stack });
    });
    return;
  }
  if (request.method === "GET" && /^\/v1\/devices\/?$/.test(request.url)) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ devices: listDevices() }));
    return;
  }
  response.on("finish", () => {
    if (response.statusCode === 404) console.error("not found over HTTP:", request.method, request.url);
  });
  for (const handler of handlers) handler.call(server.https, request, response);
});

// A device that was removed is refused when it connects.
const upgrades = server.https.listeners("upgrade").slice();
server.https.removeAllListeners("upgrade");
server.https.on("upgrade", (request, socket, head) => {
  if (isUnlinked) socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  else for (const upgrade of upgrades) upgrade.call(server.https, request, socket, head);
});

const alice = await server.createPrimaryDevice({ profileName: "Alice" });
const owner = await server.createPrimaryDevice({ profileName: "Owner", contacts: [alice] });
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const toNumber = (value) => Number(value?.toString() ?? 0);
const describe = ({ body, dataMessage, source }) => ({
  body,
  source: source?.aci,
  timestamp: toNumber(dataMessage.timestamp),
  styles: dataMessage.bodyRanges?.map(({ start, length, style }) => ({ start: start ?? 0, length, style })),
  quote: dataMessage.quote && { id: toNumber(dataMessage.quote.id), text: dataMessage.quote.text },
});

// Signal keeps a message until a device has confirmed it. The mock server forgets one whose connection ends before that.
const sendUntilConfirmed = async (send) => {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!error.message.includes("WebSocket is gone")) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
};

const commands = {
  // Scans a code with the owner's phone.
  scan: async ({ url }) => {
    const pending = await server.waitForProvision();
    const linked = new Promise((resolve) => (noteLinked = resolve));
    void pending.complete({ provisionURL: url, primaryDevice: owner }); // it waits for keys that are never uploaded
    return { device: (await linked).deviceId };
  },
  // Alice writes to the owner.
  say: async ({ text }) => {
    const timestamp = Date.now();
    await sendUntilConfirmed(() => alice.sendText(device, text, { timestamp }));
    return { timestamp };
  },
  // Alice writes in a group and mentions the owner, where the text has its first character.
  sayInGroup: async ({ text }) => {
    group ??= await alice.createGroup({ title: "Engines", members: [alice, owner] });
    const timestamp = Date.now();
    const dataMessage = {
      groupV2: group.toContext(),
      body: text,
      bodyRanges: [{ start: 0, length: 1, mentionAci: owner.device.aci }],
      timestamp: Long.fromNumber(timestamp),
    };
    await sendUntilConfirmed(() => alice.sendRaw(device, { dataMessage }, { timestamp }));
    return { timestamp };
  },
  // The owner writes a note to self on the phone.
  note: async ({ text }) => {
    const timestamp = Date.now();
    const envelope = await owner.encryptSyncSent(device, text, { timestamp, destinationServiceId: owner.device.aci });
    await server.send(device, envelope);
    return { timestamp };
  },
  // What Alice, or the owner on the phone, receives next.
  next: async () => describe(await alice.waitForMessage()),
  nextNote: async () => describe(await owner.waitForMessage()),
  nextEdit: async () => {
    const { editMessage } = await alice.waitForEditMessage();
    return { target: toNumber(editMessage.targetSentTimestamp), body: editMessage.dataMessage.body };
  },
  unlink: async () => {
    isUnlinked = true;
    for (const socket of sockets) socket.destroy();
    return {};
  },
};
const sockets = new Set();
server.https.on("connection", (socket) => {
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket));
});

process.on("unhandledRejection", () => {}); // of requests that signal-cli does not answer
const { port } = server.https.address();
say({
  port,
  owner: { aci: owner.device.aci, number: owner.device.number },
  alice: { aci: alice.device.aci, number: alice.device.number },
});
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, command, ...options } = JSON.parse(line);
  commands[command](options).then(
    (result) => say({ id, result }),
    (error) => say({ id, error: error.stack }),
  );
}
process.exit(0);
