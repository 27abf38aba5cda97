/** The settings of the server: requests, and the query that several screens share. For owners. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../api/attempt";
import { ApiError } from "../../api/errors";
import { request } from "../../api/http";
import type { Schemas } from "../../api/types";
import { toast } from "../../ui/toasts";
import { setupWords } from "../../words/setup";
import { setNames } from "./settingNames";

export type Settings = Schemas["SettingsJson"];
export type Setting = Schemas["SettingJson"];
export type SettingTemplate = Schemas["SettingTemplateJson"];
export type PlatformForm = Schemas["PlatformFormJson"];
export type PlatformField = Schemas["PlatformFieldJson"];
export type ProviderTest = Schemas["ProviderTestJson"];

export const SETTINGS_KEY = ["settings"];
export const HISTORY_KEY = ["settings-history"];

export async function getSettings(): Promise<Settings> {
  const settings = await request("GET", "/api/settings");
  setNames(settings.names);
  return settings;
}
export const changeSettings = (edit: Schemas["SettingsIn"]) => request("PATCH", "/api/settings", { body: edit });
export const listChanges = (before: number | null) => request("GET", "/api/settings/history", { query: { before, limit: 20 } });
export const undoChange = (change: number, expectedVersion: number) =>
  request("POST", "/api/settings/undo", { body: { change, expected_version: expectedVersion } });
export const testProvider = (body: Schemas["ProviderTestIn"]) => request("POST", "/api/settings/models/test", { body });
export const listProviderModels = (provider: string) => request("GET", "/api/settings/models/available", { query: { provider } });
export const testAccount = (platform: string, account: string, settings: Record<string, unknown>) =>
  request("POST", "/api/settings/platforms/{platform}/test", { path: { platform }, body: { account, settings } });

export function useSettings() {
  return useQuery({ queryKey: SETTINGS_KEY, queryFn: getSettings });
}

/** Whether another owner has changed the settings since they were loaded. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === "settings_changed";
}

class Conflict extends Error {}

function throwConflict(error: unknown): never {
  throw isConflict(error) ? new Conflict() : error;
}

/**
 * A function that runs a change for a person who pressed a button, loads the settings again, and returns whether it worked.
 * If another owner was faster, nothing changes: the person is told, and sees the current values.
 */
export function useSettingsAction(): (change: () => Promise<unknown>) => Promise<boolean> {
  const refresh = useRefreshSettings();
  return async (change) => {
    try {
      if (!(await attempt(() => change().catch(throwConflict)))) return false;
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      toast(setupWords.conflictReloaded);
      await refresh();
      return false;
    }
    await refresh();
    return true;
  };
}

/** A function that loads again what a change of settings may have changed. */
export function useRefreshSettings(): () => Promise<unknown> {
  const queryClient = useQueryClient();
  return () =>
    Promise.all(
      [SETTINGS_KEY, HISTORY_KEY, ["models"], ["offered-models"], ["profiles"], ["policies"], ["platform-accounts"], ["speech"]].map((queryKey) =>
        queryClient.invalidateQueries({ queryKey }),
      ),
    );
}
