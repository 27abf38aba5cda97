/** The projects above the list. A click on one filters the list; conversations can be dropped on it. */
import { useEffect, useRef, useState } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import type { Project } from "../api/types";
import { useLiveClient, useSessions } from "../live/context";
import { moveSessions } from "../sessions/actions";
import { PROJECT_COLORS, PROJECTS_NOT_LOADED, useProjects, useRefreshProjects } from "../sessions/useProjects";
import { confirm } from "../ui/ConfirmDialog";
import { DotsIcon, EditIcon, PlusIcon, TrashIcon } from "../ui/icons";
import { Menu, MenuItem } from "../ui/Menu";
import { NameDialog } from "../ui/NameDialog";
import { words } from "../words";
import { readDraggedIds, SESSION_DRAG_TYPE } from "./sessionDrag";
import "./Projects.css";

const MAX_NAME_CHARS = 100;
const MAX_INSTRUCTION_CHARS = 20_000;
const FOLDED_COUNT = 5; // projects that are shown before all are

const LIST_ID = "projects";

interface Props {
  selectedId: string | null;
  onSelect: (id: string | null) => void;
}

export function Projects({ selectedId, onSelect }: Props) {
  const projects = useProjects();
  const refresh = useRefreshProjects();
  const [showsAll, setShowsAll] = useState(false);
  const [editing, setEditing] = useState<Project | "new" | null>(null);
  const isDeleted = selectedId !== null && projects !== PROJECTS_NOT_LOADED && projects.every((project) => project.id !== selectedId);
  useEffect(() => {
    if (isDeleted) onSelect(null);
  }, [isDeleted, onSelect]);

  useRefreshForNewProjects(projects, refresh);

  const save = async (name: string, color: string, instructions: string) => {
    const act = () =>
      editing === "new" || editing === null
        ? calls.createProject(name, color).then((project) => (instructions === "" ? project : calls.updateProject(project.id, { instructions })))
        : calls.updateProject(editing.id, { name, color, instructions });
    if (await attempt(act)) setEditing(null);
    await refresh();
  };

  const deleteProject = async (project: Project) => {
    const question = { title: words.deleteProjectTitle(project.name), text: words.deleteProjectText, action: words.delete };
    if (!(await confirm(question))) return;
    await attempt(() => calls.deleteProject(project.id));
    await refresh();
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
        <ul id={LIST_ID}>
          {(showsAll ? projects : foldProjects(projects, selectedId)).map((project) => (
            <ProjectRow
              key={project.id}
              project={project}
              isSelected={project.id === selectedId}
              onSelect={() => onSelect(project.id === selectedId ? null : project.id)}
              onEdit={() => setEditing(project)}
              onDelete={() => void deleteProject(project)}
            />
          ))}
        </ul>
      )}
      {projects.length > FOLDED_COUNT && (
        <button
          type="button"
          className="text-button show-projects"
          aria-expanded={showsAll}
          aria-controls={LIST_ID}
          onClick={() => setShowsAll(!showsAll)}
        >
          {showsAll ? words.showFewerProjects : words.showAllProjects(projects.length)}
        </button>
      )}
      {editing !== null && (
        <ProjectDialog project={editing === "new" ? null : editing} onClose={() => setEditing(null)} onSave={save} />
      )}
    </section>
  );
}

/** Loads the projects again when a conversation is in one that is not among them: another tab or a job has made it. */
function useRefreshForNewProjects(projects: readonly Project[], refresh: () => Promise<void>): void {
  const sessions = useSessions();
  const requestedIds = useRef(new Set<string>()); // also those of other people, which the list never contains
  useEffect(() => {
    if (projects === PROJECTS_NOT_LOADED) return;
    const knownIds = new Set([...projects.map((project) => project.id), ...requestedIds.current]);
    const newIds = [...sessions.values()].flatMap(({ project_id: id }) => (id === null || knownIds.has(id) ? [] : [id]));
    if (newIds.length === 0) return;
    for (const id of newIds) requestedIds.current.add(id);
    void refresh();
  }, [projects, sessions, refresh]);
}

/** The first projects, and the selected one. */
function foldProjects(projects: readonly Project[], selectedId: string | null): Project[] {
  return projects.filter((project, index) => index < FOLDED_COUNT || project.id === selectedId);
}

interface RowProps {
  project: Project;
  isSelected: boolean;
  onSelect: () => void;
  onEdit: () => void;
  onDelete: () => void;
}

function ProjectRow({ project, isSelected, onSelect, onEdit, onDelete }: RowProps) {
  const client = useLiveClient();
  const refresh = useRefreshProjects();
  const [isDropTarget, setDropTarget] = useState(false);
  return (
    <li
      className="project"
      data-selected={isSelected}
      data-drop-target={isDropTarget}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(SESSION_DRAG_TYPE)) return;
        event.preventDefault();
        setDropTarget(true);
      }}
      onDragLeave={() => setDropTarget(false)}
      onDrop={(event) => {
        if (!event.dataTransfer.types.includes(SESSION_DRAG_TYPE)) return;
        event.preventDefault();
        setDropTarget(false);
        void moveSessions(client, readDraggedIds(event.dataTransfer), project).then(refresh);
      }}
    >
      <button type="button" className="project-name" aria-pressed={isSelected} onClick={onSelect}>
        <span className="swatch" style={{ backgroundColor: project.color ?? undefined }} />
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
          {words.editProject}
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
  onSave: (name: string, color: string, instructions: string) => Promise<void>;
}

function ProjectDialog({ project, onClose, onSave }: DialogProps) {
  const [color, setColor] = useState<string>(project?.color ?? PROJECT_COLORS[0]);
  const [instructions, setInstructions] = useState(project?.instructions ?? "");
  return (
    <NameDialog
      title={project === null ? words.newProject : words.editProject}
      label={words.projectName}
      name={project?.name ?? ""}
      maxLength={MAX_NAME_CHARS}
      onClose={onClose}
      onDone={(name) => onSave(name, color, instructions.trim())}
    >
      <fieldset className="colors">
        <legend>{words.color}</legend>
        {PROJECT_COLORS.map((each, index) => (
          <label key={each} className="color" title={words.colorNames[index]}>
            <input type="radio" name="color" checked={each === color} onChange={() => setColor(each)} />
            <span className="swatch large" style={{ backgroundColor: each }} />
            <span className="visually-hidden">{words.colorNames[index]}</span>
          </label>
        ))}
      </fieldset>
      <label className="field">
        {words.projectInstructions}
        <textarea rows={4} dir="auto" value={instructions} maxLength={MAX_INSTRUCTION_CHARS} onChange={(event) => setInstructions(event.target.value)} />
        <span className="hint">{words.projectInstructionsHint}</span>
      </label>
    </NameDialog>
  );
}
