/** The menu that downloads usage as a CSV file. */
import { attempt } from "../../api/attempt";
import { ChevronDownIcon, DownloadIcon } from "../../ui/icons";
import { Menu, MenuItem } from "../../ui/Menu";
import { words } from "../../words";
import type { Grouping } from "../shared/calls";
import * as calls from "../shared/calls";
import { isValidRange, type ReportQuery } from "./chartData";
import { buildCsv, downloadCsv } from "./csv";

export function UsageExport({ range, all, isOwner }: ReportQuery) {
  const exportBy = (by: Grouping) =>
    void attempt(async () => {
      const { rows } = await calls.getUsage(by, range.first, range.last, all);
      downloadCsv(`palaver-usage-${by}-${range.first}-${range.last}.csv`, buildCsv(by, rows));
    });
  return (
    <Menu
      button={
        <button type="button" className="chip-button" disabled={!isValidRange(range)}>
          <DownloadIcon />
          {words.usageExport}
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuItem onSelect={() => exportBy("day")}>{words.usageByDay}</MenuItem>
      <MenuItem onSelect={() => exportBy("model")}>{words.usageByModel}</MenuItem>
      <MenuItem onSelect={() => exportBy("platform")}>{words.usageByPlatform}</MenuItem>
      {isOwner && <MenuItem onSelect={() => exportBy("person")}>{words.usageByPerson}</MenuItem>}
      <MenuItem onSelect={() => exportBy("session")}>{words.usageBySession}</MenuItem>
    </Menu>
  );
}
