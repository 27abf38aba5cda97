import { expect, it } from "vitest";
import { FrameReader } from "./frames";

it("reads events however they are cut into chunks", () => {
  const stream = 'retry: 1000\nid: a:1\n\nevent: draft\ndata: {"x":"ä"}\n\n: still here\n\nid: a:2\nevent: lists\ndata: {}\n\n';
  for (let size = 1; size < stream.length; size += 1) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < stream.length; at += size) frames.push(...reader.read(stream.slice(at, at + size)));
    expect(frames).toEqual([
      { name: "draft", data: '{"x":"ä"}' },
      { name: "lists", data: "{}" },
    ]);
    expect(reader.cursor).toBe("a:2");
  }
});

it("keeps the cursor of an event that has not come whole for later", () => {
  const reader = new FrameReader();
  expect(reader.read("id: a:7\nevent: event\ndata: {")).toEqual([]);
  expect(reader.cursor).toBeNull();
});
