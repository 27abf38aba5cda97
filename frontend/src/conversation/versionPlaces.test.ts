import { describe, expect, it } from "vitest";
import type { LogEvent } from "../api/types";
import { buildStoredRows } from "./rows";
import { findVersionPlaces } from "./versionPlaces";

function buildMessage(seq: number, role: "user" | "assistant", fields: object = {}, version: LogEvent["version"] = null): LogEvent {
  const message = { role, content: `text ${seq}`, ...fields } as LogEvent["message"];
  return { seq, kind: "message", at: "2026-11-17T00:00:00Z", hidden: false, person: null, message, facts: {}, version };
}

const findPlaces = (events: LogEvent[]) => [...findVersionPlaces(buildStoredRows(events, () => "today"))];

describe("findVersionPlaces", () => {
  const regenerated = { number: 2, count: 3, has_edits: false };
  const edited = { number: 1, count: 2, has_edits: true };

  it("is below the answer if only the answer was regenerated", () => {
    const events = [buildMessage(4, "user", {}, regenerated), buildMessage(5, "assistant", { answers_seq: 4 })];
    expect(findPlaces(events)).toEqual([["answer-4", { seq: 4, version: regenerated }]]);
  });

  it("is below the message if that was edited", () => {
    const events = [buildMessage(4, "user", {}, edited), buildMessage(5, "assistant", { answers_seq: 4 })];
    expect(findPlaces(events)).toEqual([["message-4", { seq: 4, version: edited }]]);
  });

  it("is below the message if there is no answer", () => {
    expect(findPlaces([buildMessage(4, "user", {}, regenerated)])).toEqual([["message-4", { seq: 4, version: regenerated }]]);
  });

  it("is nowhere for messages with one version", () => {
    expect(findPlaces([buildMessage(4, "user"), buildMessage(5, "assistant", { answers_seq: 4 })])).toEqual([]);
  });
});
