/** The browsers in which the person is signed in. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../api/attempt";
import { formatRecent } from "../../format/time";
import { baseUrl } from "../../lib/baseUrl";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import type { Device } from "../shared/calls";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { ItemList } from "./ItemList";

const DEVICES_KEY = ["devices"];

export function Devices() {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: DEVICES_KEY, queryFn: calls.listDevices });
  const signOut = (device: Device) =>
    attempt(() => calls.signOutDevice(device.id)).then(() => queryClient.invalidateQueries({ queryKey: DEVICES_KEY }));
  return (
    <>
      <p className="hint">{words.devicesIntro}</p>
      <QueryResult query={query}>
        {({ devices }) => (
          <ItemList
            label={words.devices}
            emptyText=""
            items={devices.map((device) => ({
              id: device.id,
              name: device.name,
              tag: device.is_current ? words.thisDevice : undefined,
              facts: describeDevice(device),
              action: !device.is_current && (
                <button type="button" className="button" aria-label={words.signOutDevice(device.name)} onClick={() => void signOut(device)}>
                  {words.signOut}
                </button>
              ),
            }))}
          />
        )}
      </QueryResult>
      <div className="section-actions">
        <button type="button" className="button" onClick={() => void signOutEverywhere()}>
          {words.signOutEverywhere}
        </button>
      </div>
    </>
  );
}

function describeDevice(device: Device): string {
  const way = words.deviceSignInMethods[device.sign_in_method] ?? device.sign_in_method;
  return [words.lastSeen(formatRecent(device.last_seen_at)), way, device.ip_address].filter(Boolean).join(" · ");
}

async function signOutEverywhere(): Promise<void> {
  const question = {
    title: words.signOutEverywhereTitle,
    text: words.signOutEverywhereText,
    action: words.signOutEverywhere,
  };
  if ((await confirm(question)) && (await attempt(calls.signOutEverywhere))) location.assign(baseUrl);
}
