/** The last item of a model menu: leads to everything that the providers offer. */
import { openModelDialog, type ModelChoice } from "../layout/dialogs";
import { MenuItem, MenuSeparator } from "../ui/Menu";
import { words } from "../words";

export function MoreModelsItem(choice: ModelChoice) {
  return (
    <>
      <MenuSeparator />
      <MenuItem onSelect={() => setTimeout(() => openModelDialog(choice), 0)}>{words.moreModels}</MenuItem>
    </>
  );
}
