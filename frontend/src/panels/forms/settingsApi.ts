/** The settings of the server: requests, and the query that several screens share. For owners. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../api/attempt";
import { ApiError } from "../../api/errors";
import { request } from "../../api/http";
import type { components } from "../../api/schema";
import { toast } from "../../ui/toasts";
import { setupWords } from "../../words/setup";
import { setNames } from "./settingNames";

type Schemas = components["schemas"];
export type Settings = Schemas["SettingsJson"];
export type Setting = Schemas["SettingJson"];
export type SettingTemplate = Schemas["SettingTemplateJson"];
export type PlatformForm = Schemas["PlatformFormJson"];
export type PlatformField = Schemas["PlatformFieldJson"];
export type ProviderPreset = Schemas["ProviderPresetJson"];
export type ProviderTest = Schemas["ProviderTestJson"];
export type AccountTest = Schemas["AccountTestJson"];
export type SettingsChange = Schemas["SettingsChangeJson"];
type SettingsChanged = Schemas["SettingsChangedJson"];
type SettingsHistory = Schemas["SettingsHistoryJson"];

export interface SettingsEdit {
  set?: Record<string, unknown>;
  unset?: string[];
  expected_version?: number;
}

export const SETTINGS_KEY = ["settings"];
export const HISTORY_KEY = ["settings-history"];

export async function getSettings(): Promise<Settings> {
  const settings = await request<Settings>("GET", "/settings");
  setNames(settings.names);
  return settings;
}
export const changeSettings = (edit: SettingsEdit) => request<SettingsChanged>("PATCH", "/settings", { body: edit });
export const listChanges = (before: number | null) => request<SettingsHistory>("GET", "/settings/history", { query: { before, limit: 20 } });
export const undoChange = (change: number, expectedVersion: number) =>
  request<SettingsChanged>("POST", "/settings/undo", { body: { change, expected_version: expectedVersion } });
export const testProvider = (body: { provider: string; api_key: string | null; base_url: string | null; model: string | null }) =>
  request<ProviderTest>("POST", "/settings/models/test", { body });
export const listProviderModels = (provider: string) => request<{ models: string[] }>("GET", "/settings/models/available", { query: { provider } });
export const testAccount = (platform: string, account: string, settings: Record<string, unknown>) =>
  request<AccountTest>("POST", `/settings/platforms/${encodeURIComponent(platform)}/test`, { body: { account, settings } });

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
