/** The browsers in which somebody is signed in. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../conversation/actions";
import { home } from "../../api/client";
import { ago } from "../../lib/time";
import { confirm } from "../../ui/confirm";
import { words } from "../../words";
import * as calls from "../calls";
import type { Device } from "../calls";
import { Loaded } from "../parts/Loaded";
import { Listed } from "./Listed";

const DEVICES = ["devices"];

export function Devices() {
  const client = useQueryClient();
  const query = useQuery({ queryKey: DEVICES, queryFn: calls.devices });
  const signOut = (device: Device) =>
    attempt(() => calls.signOutDevice(device.id)).then(() => client.invalidateQueries({ queryKey: DEVICES }));
  return (
    <>
      <p className="hint">{words.devicesIntro}</p>
      <Loaded query={query}>
        {({ devices }) => (
          <Listed
            label={words.devices}
            none=""
            things={devices.map((device) => ({
              id: device.id,
              name: device.name,
              tag: device.current ? words.deviceThis : undefined,
              facts: factsOf(device),
              action: !device.current && (
                <button type="button" className="button" aria-label={words.signOutDevice(device.name)} onClick={() => void signOut(device)}>
                  {words.signOut}
                </button>
              ),
            }))}
          />
        )}
      </Loaded>
      <div className="part-actions">
        <button type="button" className="button" onClick={() => void everywhere()}>
          {words.signOutEverywhere}
        </button>
      </div>
    </>
  );
}

function factsOf(device: Device): string {
  const way = words.deviceWays[device.way] ?? device.way;
  return [words.lastSeen(ago(device.seen_at)), way, device.address].filter(Boolean).join(" · ");
}

async function everywhere(): Promise<void> {
  const question = {
    title: words.signOutEverywhereTitle,
    text: words.signOutEverywhereText,
    action: words.signOutEverywhere,
  };
  if ((await confirm(question)) && (await attempt(calls.signOutEverywhere))) location.assign(home);
}
