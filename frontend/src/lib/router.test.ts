import { expect, it } from "vitest";
import { getLocation, navigate, parseSessionLocation, setQuery } from "./router";

const ID = "20261115_081200_1a2b3c4d";

it("reads a session and a message from an address", () => {
  expect(parseSessionLocation({ path: ID, hash: "12" })).toEqual({ id: ID, seq: 12 });
  expect(parseSessionLocation({ path: ID, hash: "x" })).toEqual({ id: ID, seq: null });
  expect(parseSessionLocation({ path: "usage", hash: "" })).toBeNull();
});

it("accepts any text in an address, even an invalid escape sequence", () => {
  navigate("usage", { hash: "%E0%" });
  expect(getLocation().hash).toBe("%E0%");
  navigate("usage", { hash: "%C3%A4" });
  expect(getLocation().hash).toBe("ä");
});

it("keeps the query when another path is opened", () => {
  navigate("usage");
  setQuery("q=lisbon");
  navigate(ID, { hash: "12" });
  expect(getLocation()).toEqual({ path: ID, query: "q=lisbon", hash: "12" });
  setQuery("", { replace: true });
  expect(getLocation()).toEqual({ path: ID, query: "", hash: "12" });
  expect(location.search).toBe("");
});
