import { expect, it } from "vitest";
import { SseParser } from "./sseParser";

it("reads events however they are split into chunks", () => {
  const stream = 'retry: 1000\nid: a:1\n\nevent: draft\ndata: {"x":"ä"}\n\n: still here\n\nid: a:2\nevent: lists\ndata: {}\n\n';
  for (let size = 1; size < stream.length; size += 1) {
    const parser = new SseParser();
    const events = [];
    for (let at = 0; at < stream.length; at += size) events.push(...parser.read(stream.slice(at, at + size)));
    expect(events).toEqual([
      { name: "draft", data: '{"x":"ä"}' },
      { name: "lists", data: "{}" },
    ]);
    expect(parser.cursor).toBe("a:2");
  }
});

it("does not move the cursor for an incomplete event", () => {
  const parser = new SseParser();
  expect(parser.read("id: a:7\nevent: event\ndata: {")).toEqual([]);
  expect(parser.cursor).toBeNull();
});
