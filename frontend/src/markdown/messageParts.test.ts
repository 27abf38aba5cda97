import { describe, expect, it } from "vitest";
import { splitLinks, splitUserText, type UserTextPart } from "./messageParts";

const text = (value: string): UserTextPart => ({ kind: "text", text: value });
const code = (value: string, language = ""): UserTextPart => ({ kind: "code", text: value, language });
const findUrls = (value: string) => splitLinks(value).flatMap(({ href }) => href ?? []);

describe("a person's message", () => {
  it("shows fenced code as code, and the text around it as typed", () => {
    const message = "  Look *here*:\n\n```Python title=x\ndef f():\n\n    return 1\n```\n\n<b>and</b>\n\n- there\n";
    expect(splitUserText(message)).toEqual([
      text("  Look *here*:"),
      code("def f():\n\n    return 1", "python"),
      text("<b>and</b>\n\n- there"),
    ]);
  });

  it("closes a fence with one of the same kind that is at least as long", () => {
    expect(splitUserText("````md\n```\nx\n```\n`````")).toEqual([code("```\nx\n```", "md")]);
    expect(splitUserText("~~~\n```\n~~~\na")).toEqual([code("```"), text("a")]);
    expect(splitUserText("   ```sh\n   ls\n  a\n```")).toEqual([code("ls\na", "sh")]);
    expect(splitUserText("```\r\na\r\n```\r\nb")).toEqual([code("a"), text("b")]);
  });

  it("stays as typed if it has no complete fence", () => {
    for (const message of ["", "a\n\n\nb  ", "```js\nopen", "`` `x` ``", "``` a ``` b\nc", "    ```\n    x\n    ```", "a\r\n```"]) {
      expect(splitUserText(message)).toEqual([text(message)]);
    }
  });

  it("may have an open fence before or after a complete one", () => {
    expect(splitUserText("````\na\n```\nb\n```\nc")).toEqual([text("````\na"), code("b"), text("c")]);
    expect(splitUserText("```\nb\n```\nc\n```js\nd")).toEqual([code("b"), text("c\n```js\nd")]);
  });
});

describe("a web address in a message", () => {
  it("ends before the punctuation of its sentence", () => {
    expect(findUrls("See https://example.org/a?b=c#d. Or (http://localhost:8765/x), ok?")).toEqual([
      "https://example.org/a?b=c#d",
      "http://localhost:8765/x",
    ]);
    expect(findUrls("https://en.wikipedia.org/wiki/Tea_(drink) (https://a.b/c_(d)!)")).toEqual([
      "https://en.wikipedia.org/wiki/Tea_(drink)",
      "https://a.b/c_(d)",
    ]);
  });

  it("is nothing else", () => {
    for (const message of ["javascript:alert(1)", "xhttps://a.b", "https://", "https:// a", "http://[", "data:text/html,x", "example.org"]) {
      expect(findUrls(message), message).toEqual([]);
    }
  });

  it("cannot hide characters", () => {
    expect(findUrls("https://a.b/\u202Egpj.exe")).toEqual(["https://a.b/"]);
  });

  it("leaves the text as it is", () => {
    for (const message of ["", "  a https://a.b, https://c.d\n\nhttps://e.f. ", "https://a.b"]) {
      expect(splitLinks(message).map((part) => part.text).join("")).toBe(message);
    }
  });
});
