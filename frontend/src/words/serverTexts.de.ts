/** All German texts for what the server says in English. Loaded with the screens that show it, for readers of German. */
import { makeTextTable } from "../lib/textPatterns";
import { accountTextsDe } from "./accounts.de";
import { phoneAccountTextsDe } from "./phoneAccounts.de";
import { platformTextsDe } from "./platforms.de";
import { allowedDe, problemTextsDe } from "./problems.de";
import { settingHelpDe } from "./settings.de";

export { findingsDe, findingSubjectsDe } from "./findings.de";
export { platformFieldNamesDe } from "./platforms.de";
export { settingChoicesDe, settingNamesDe } from "./settings.de";

export const allowedTable = makeTextTable(allowedDe);
export const textTable = makeTextTable({ ...settingHelpDe, ...platformTextsDe, ...problemTextsDe, ...accountTextsDe, ...phoneAccountTextsDe });
