/** Projects above the list: choosing one shows what is in it; conversations can be dropped on it. */
import { useEffect, useState } from "react";
import * as calls from "../api/calls";
import type { Project } from "../api/types";
import { attempt, move } from "../conversation/actions";
import { useCenter } from "../live/context";
import { confirm } from "../ui/confirm";
import { NameDialog } from "../ui/NameDialog";
import { DotsIcon, EditIcon, PlusIcon, TrashIcon } from "../ui/icons";
import { Menu, MenuItem } from "../ui/Menu";
import { words } from "../words";
import { DRAGGED, idsIn } from "./dragging";
import { COLOURS, UNKNOWN, useProjects, useProjectsAgain } from "./useProjects";

interface Props {
  chosen: string | null;
  onChoose: (id: string | null) => void;
}

export function Projects({ chosen, onChoose }: Props) {
  const projects = useProjects();
  const again = useProjectsAgain();
  const [editing, setEditing] = useState<Project | "new" | null>(null);
  const isGone = chosen !== null && projects !== UNKNOWN && projects.every((project) => project.id !== chosen);
  useEffect(() => {
    if (isGone) onChoose(null); // deleted, here or elsewhere
  }, [isGone, onChoose]);

  const save = async (name: string, colour: string) => {
    const act = () =>
      editing === "new" || editing === null
        ? calls.createProject(name, colour)
        : calls.changeProject(editing.id, { name, colour });
    if (await attempt(act)) setEditing(null);
    await again();
  };

  const drop = async (project: Project) => {
    const question = { title: words.deleteProjectTitle(project.name), text: words.deleteProjectText, action: words.delete };
    if (!(await confirm(question))) return;
    await attempt(() => calls.deleteProject(project.id));
    await again();
  };

  return (
    <section className="projects" aria-label={words.projects}>
      <div className="section-head">
        <h3>{words.projects}</h3>
        <button
          type="button"
          className="icon-button small"
          title={words.newProject}
          aria-label={words.newProject}
          onClick={() => setEditing("new")}
        >
          <PlusIcon />
        </button>
      </div>
      {projects.length > 0 && (
        <ul>
          {projects.map((project) => (
            <ProjectRow
              key={project.id}
              project={project}
              isChosen={project.id === chosen}
              onChoose={() => onChoose(project.id === chosen ? null : project.id)}
              onEdit={() => setEditing(project)}
              onDelete={() => void drop(project)}
            />
          ))}
        </ul>
      )}
      {editing !== null && (
        <ProjectDialog project={editing === "new" ? null : editing} onClose={() => setEditing(null)} onSave={save} />
      )}
    </section>
  );
}

interface RowProps {
  project: Project;
  isChosen: boolean;
  onChoose: () => void;
  onEdit: () => void;
  onDelete: () => void;
}

function ProjectRow({ project, isChosen, onChoose, onEdit, onDelete }: RowProps) {
  const center = useCenter();
  const again = useProjectsAgain();
  const [isOver, setOver] = useState(false);
  return (
    <li
      className="project"
      data-chosen={isChosen}
      data-over={isOver}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(DRAGGED)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        if (!event.dataTransfer.types.includes(DRAGGED)) return;
        event.preventDefault();
        setOver(false);
        void move(center, idsIn(event.dataTransfer), project).then(again);
      }}
    >
      <button type="button" className="project-name" aria-pressed={isChosen} onClick={onChoose}>
        <span className="swatch" style={{ backgroundColor: project.colour ?? undefined }} />
        <span dir="auto">{project.name}</span>
      </button>
      <Menu
        button={
          <button type="button" className="icon-button small" aria-label={words.actionsFor(project.name)} title={words.more}>
            <DotsIcon />
          </button>
        }
      >
        <MenuItem icon={<EditIcon />} onSelect={onEdit}>
          {words.renameProject}
        </MenuItem>
        <MenuItem icon={<TrashIcon />} danger onSelect={onDelete}>
          {words.deleteProject}
        </MenuItem>
      </Menu>
    </li>
  );
}

interface DialogProps {
  project: Project | null;
  onClose: () => void;
  onSave: (name: string, colour: string) => Promise<void>;
}

function ProjectDialog({ project, onClose, onSave }: DialogProps) {
  const [colour, setColour] = useState<string>(project?.colour ?? COLOURS[0]);
  return (
    <NameDialog
      title={project === null ? words.newProject : words.renameProject}
      label={words.projectName}
      name={project?.name ?? ""}
      longest={100}
      onClose={onClose}
      onDone={(name) => onSave(name, colour)}
    >
      <fieldset className="colours">
        <legend>{words.colour}</legend>
        {COLOURS.map((each, place) => (
          <label key={each} className="colour" title={words.colourNames[place]}>
            <input type="radio" name="colour" checked={each === colour} onChange={() => setColour(each)} />
            <span className="swatch large" style={{ backgroundColor: each }} />
            <span className="visually-hidden">{words.colourNames[place]}</span>
          </label>
        ))}
      </fieldset>
    </NameDialog>
  );
}
