/** The settings of the server: requests, and the query that several screens share. For owners. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "../../api/http";
import type { components } from "../../api/schema";

type Schemas = components["schemas"];
export type Settings = Schemas["SettingsOut"];
export type Setting = Schemas["SettingOut"];
export type SettingTemplate = Schemas["SettingTemplateOut"];
export type PlatformForm = Schemas["PlatformFormOut"];
export type PlatformField = Schemas["PlatformFieldOut"];
export type ProviderPreset = Schemas["ProviderPresetOut"];
export type ProviderTest = Schemas["ProviderTestOut"];
export type AccountTest = Schemas["AccountTestOut"];
export type SettingsChange = Schemas["SettingsChangeOut"];
type SettingsChanged = Schemas["SettingsChangedOut"];
type SettingsHistory = Schemas["SettingsHistoryOut"];

export interface SettingsEdit {
  set?: Record<string, unknown>;
  unset?: string[];
  expected_version?: number;
}

export const SETTINGS_KEY = ["settings"];
export const HISTORY_KEY = ["settings-history"];

export const getSettings = () => request<Settings>("GET", "/settings");
export const changeSettings = (edit: SettingsEdit) => request<SettingsChanged>("PATCH", "/settings", { body: edit });
export const listChanges = (before: number | null) => request<SettingsHistory>("GET", "/settings/history", { query: { before, limit: 20 } });
export const undoChange = (change: number) => request<SettingsChanged>("POST", "/settings/undo", { body: { change } });
export const testProvider = (body: { provider: string; api_key: string | null; base_url: string | null; model: string | null }) =>
  request<ProviderTest>("POST", "/settings/models/test", { body });
export const listProviderModels = (provider: string) => request<{ models: string[] }>("GET", "/settings/models/available", { query: { provider } });
export const testAccount = (platform: string, settings: Record<string, unknown>) =>
  request<AccountTest>("POST", `/settings/platforms/${encodeURIComponent(platform)}/test`, { body: { settings } });

export function useSettings() {
  return useQuery({ queryKey: SETTINGS_KEY, queryFn: getSettings });
}

/** A function that loads again what a change of settings may have changed. */
export function useRefreshSettings(): () => Promise<unknown> {
  const queryClient = useQueryClient();
  return () =>
    Promise.all(
      [SETTINGS_KEY, HISTORY_KEY, ["models"], ["profiles"], ["policies"], ["platform-accounts"]].map((queryKey) =>
        queryClient.invalidateQueries({ queryKey }),
      ),
    );
}
