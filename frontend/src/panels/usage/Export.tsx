/** Takes usage along as a file. */
import { attempt } from "../../conversation/actions";
import { ChevronDownIcon, DownloadIcon } from "../../ui/icons";
import { Menu, MenuItem } from "../../ui/Menu";
import { words } from "../../words";
import * as calls from "../calls";
import type { Grouping } from "../calls";
import { csvOf, download } from "./csv";
import { isWhole, type Asked } from "./figures";

export function Export({ span, all, isOwner }: Asked) {
  const write = (by: Grouping) =>
    void attempt(async () => {
      const { rows } = await calls.usage(by, span.first, span.last, all);
      download(`palaver-usage-${by}-${span.first}-${span.last}.csv`, csvOf(by, rows));
    });
  return (
    <Menu
      button={
        <button type="button" className="chip-button" disabled={!isWhole(span)}>
          <DownloadIcon />
          {words.usageExport}
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuItem onSelect={() => write("day")}>{words.usageByDay}</MenuItem>
      <MenuItem onSelect={() => write("model")}>{words.usageByModel}</MenuItem>
      <MenuItem onSelect={() => write("platform")}>{words.usageByPlatform}</MenuItem>
      {isOwner && <MenuItem onSelect={() => write("person")}>{words.usageByPerson}</MenuItem>}
      <MenuItem onSelect={() => write("session")}>{words.usageBySession}</MenuItem>
    </Menu>
  );
}
