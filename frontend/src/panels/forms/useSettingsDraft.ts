/** The unsaved changes of a form: which settings get which value, saving them, and what the server refused. */
import { useMemo, useState } from "react";
import { ApiError, describeError } from "../../api/errors";
import { useLeaveGuard } from "../../lib/leaveGuard";
import { toast } from "../../ui/toasts";
import { setupWords } from "../../words/setup";
import { readProblems, RESET, type Draft } from "./settingValues";
import { changeSettings, isConflict, useRefreshSettings, type Settings } from "./settingsApi";

const NO_CHANGES: Draft = new Map();
const NO_PROBLEMS: ReadonlyMap<string, string> = new Map();

export function useSettingsDraft(settings: Settings, keys: readonly string[]) {
  const [draft, setDraft] = useState(NO_CHANGES);
  const [problems, setProblems] = useState(NO_PROBLEMS);
  const [isSaving, setSaving] = useState(false);
  const refresh = useRefreshSettings();
  const shownKeys = useMemo(() => new Set(keys), [keys]);
  useLeaveGuard(draft.size > 0, setupWords.leaveQuestion);

  const change = (key: string, value: unknown) => {
    const next = new Map(draft);
    if (value === undefined) next.delete(key);
    else next.set(key, value);
    setDraft(next);
    if (problems.has(key)) setProblems(new Map([...problems].filter(([each]) => each !== key)));
  };

  const discard = () => {
    setDraft(NO_CHANGES);
    setProblems(NO_PROBLEMS);
  };

  /** Saves everything or nothing; returns whether it was saved. */
  const save = async (): Promise<boolean> => {
    setSaving(true);
    setProblems(NO_PROBLEMS);
    try {
      const entries = [...draft];
      const { pending_restart: restarts, changed } = await changeSettings({
        set: Object.fromEntries(entries.filter(([, value]) => value !== RESET)),
        unset: entries.filter(([, value]) => value === RESET).map(([key]) => key),
        expected_version: settings.version,
      });
      setDraft(NO_CHANGES);
      toast(changed.some((key) => restarts.includes(key)) ? setupWords.savedRestart : setupWords.saved);
      await refresh();
      return true;
    } catch (error) {
      if (isConflict(error)) {
        setProblems(new Map([["", setupWords.conflict]]));
        await refresh();
      } else if (error instanceof ApiError) setProblems(readProblems(error, shownKeys));
      else setProblems(new Map([["", describeError(error)]]));
      return false;
    } finally {
      setSaving(false);
    }
  };
  return { draft, problems, isSaving, change, discard, save };
}
