import { act, createElement } from "react";
import { describe, expect, it } from "vitest";
import { renderForTest } from "../testing/renderForTest";
import { Markdown } from "./Markdown";
import { restoreRemoteImages } from "./remoteImages";

const render = (...texts: string[]) =>
  renderForTest(createElement("main", null, ...texts.map((text, index) => createElement(Markdown, { key: index, text }))));
const click = (element: Element | null | undefined) => act(() => (element as HTMLElement).click());

describe("footnotes", () => {
  const TEXT = "One[^1], two[^b] and [^none].\n\n[^1]: The **first**\ngoes on.\n[^b]: The second.\n\n    More of it.\n\nThe end.";

  it("are shown at the end of their message, with links there and back", () => {
    const page = render(TEXT);
    const links = [...page.querySelectorAll(".footnote-link")];
    expect(links.map((link) => [link.textContent, link.getAttribute("aria-label")])).toEqual([
      ["1", "Footnote 1"],
      ["2", "Footnote 2"],
    ]);
    expect(page.textContent).toContain("[^none]");
    const notes = [...page.querySelectorAll(".footnotes li")];
    expect(notes.map((note) => note.textContent.replaceAll("\n", " "))).toEqual(["The first goes on. ↩", "The second. More of it. ↩"]);
    expect(notes[0]?.querySelector("strong")?.textContent).toBe("first");
    expect(page.querySelector(".markdown")?.lastElementChild?.className).toBe("footnotes");
    click(links[1]);
    expect(document.activeElement).toBe(notes[1]);
    click(notes[1]?.querySelector("button"));
    expect(document.activeElement).toBe(links[1]);
    expect(location.hash).toBe("");
  });

  it("of two messages have different ids", () => {
    const page = render(TEXT, TEXT);
    const ids = [...page.querySelectorAll("[id]")].map((element) => element.id);
    expect(ids).toHaveLength(4);
    expect(new Set(ids).size).toBe(4);
    click(page.querySelectorAll(".footnote-link")[2]);
    expect(document.activeElement).toBe(page.querySelectorAll(".footnotes li")[2]);
  });

  it("may be anywhere in the message", () => {
    const page = render("> quoted[^1]\n>\n> [^1]: inside\n\n- item[^2]\n\n  [^2]: in a list");
    expect([...page.querySelectorAll(".footnotes li .block")].map((note) => note.textContent.trim())).toEqual(["inside", "in a list"]);
    expect(page.querySelectorAll(".footnote-link")).toHaveLength(2);
  });
});

describe("HTML tags", () => {
  it("work if they are harmless", () => {
    const page = render("H<sub>2</sub>O, x<SUP>**2**</SUP>, <kbd>Ctrl</kbd>+<kbd>C</kbd>, <mark>this</mark>, a<br>b, <sub>open");
    expect(page.querySelector("sub")?.textContent).toBe("2");
    expect(page.querySelector("sup strong")?.textContent).toBe("2");
    expect([...page.querySelectorAll("kbd, mark")].map((element) => element.textContent)).toEqual(["Ctrl", "C", "this"]);
    expect(page.querySelectorAll("br")).toHaveLength(1);
    expect(page.textContent).toContain("<sub>open");
  });

  it("are text if they have attributes or could do harm", () => {
    for (const tag of ['<sub style="position:fixed">x</sub>', "<sub onclick=alert(1)>x</sub>", "<details ontoggle=alert(1) open>x</details>", "<style>*{}</style>", '<a href="https://a.b">x</a>', "<b class=bubble>x</b>"]) {
      const page = render(`see ${tag}\n\n${tag}`);
      expect(page.querySelectorAll("sub, details, style, a, b, [style], [onclick], [ontoggle]"), tag).toHaveLength(0);
      expect(page.textContent.split(tag), tag).toHaveLength(3);
    }
  });

  it("fold a part of a message", () => {
    const page = render("<details>\n<summary>The *steps*</summary>\n\n- one\n\n```\n</details>\n```\n\n<details open><summary>Inside</summary>two</details>\n</details>\n\nAfter.");
    const [outer, inner] = [...page.querySelectorAll("details")];
    expect([outer?.open, inner?.open]).toEqual([false, true]);
    expect(outer?.querySelector("summary em")?.textContent).toBe("steps");
    expect(outer?.querySelector("pre")?.textContent).toBe("</details>");
    expect(inner?.textContent.trim()).toBe("Insidetwo");
    expect(outer?.textContent).not.toContain("After");
  });

  it("fold nothing before they are closed", () => {
    expect(render("<details>\n<summary>Steps</summary>\n\none").querySelector("details")?.open).toBe(true);
    expect(render("<details>one</details>").querySelector("summary")?.textContent).toBe("Details");
  });
});

describe("lists and tables", () => {
  it("have checkboxes with a name", () => {
    const page = render("- [x] done\n  - [ ] below\n- [ ] open\n\n  ```\n  code\n  ```");
    const names = [...page.querySelectorAll("input")].map((input) => [input.getAttribute("aria-label"), input.checked, input.disabled]);
    expect(names).toEqual([
      ["Completed task", true, true],
      ["Incomplete task", false, true],
      ["Incomplete task", false, true],
    ]);
  });

  it("let only long cells break", () => {
    const page = render(`| a | b |\n|---|---|\n| short | ${"a long cell ".repeat(5)}|`);
    expect([...page.querySelectorAll("td")].map((cell) => cell.className)).toEqual(["", "long"]);
  });
});

describe("an image from another site", () => {
  const TEXT = "![a cat](https://images.example/cat.png?a=1&b=2)";

  it("is loaded by a click, and is there again when its message is", () => {
    const page = render(TEXT, TEXT);
    expect(page.querySelectorAll("img")).toHaveLength(0);
    click(page.querySelector(".remote-image b"));
    const images = [...page.querySelectorAll("img")];
    expect(images.map((image) => [image.getAttribute("src"), image.alt, image.referrerPolicy])).toEqual([
      ["https://images.example/cat.png?a=1&b=2", "a cat", "no-referrer"],
    ]);
    expect(page.querySelectorAll(".remote-image")).toHaveLength(1); // the other one was not clicked
    expect(document.activeElement).toBe(images[0]?.parentElement);
    const root = page.querySelectorAll<HTMLElement>(".block")[1];
    if (root !== undefined) restoreRemoteImages(root); // as a block does when it is shown again
    expect(page.querySelectorAll("img")).toHaveLength(2);
  });

  it("becomes a link if it cannot be loaded", () => {
    const page = render(TEXT);
    click(page.querySelector(".remote-image"));
    page.querySelector("img")?.dispatchEvent(new Event("error"));
    expect(page.querySelector("img")).toBeNull();
    expect(page.querySelector("a")?.textContent).toBe("Couldn’t load image: a cat");
  });
});
