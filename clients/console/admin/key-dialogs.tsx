import { SCOPES } from '../../../contracts/index.js';
import type { ApiKey } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { may, me, readSession } from '../app/session.js';
import { useField } from '../parts/labelled.js';
import { keyPatchOf, keyRequestOf, localOf, overlapOf } from './fields.js';
import { FormDialog, OverlapField, TextInput } from './form-dialog.js';

export const isOwn = ({ id }: Pick<ApiKey, 'id'>) => me()?.api_key?.id === id;

interface NewKeyProps {
  project: string;
  /** Names that are offered; any other one is a new project. */
  projects: readonly string[];
  onClose: () => void;
}

export function NewKey({ project, projects, onClose }: NewKeyProps) {
  const create = async (form: FormData) => (await client.apiKeys.create(keyRequestOf(form))).secret;
  return (
    <FormDialog title="New key" submit="Create" send={create} onClose={onClose}>
      <TextInput name="name" label="Name" required />
      <ScopesField />
      {may('operator') && (
        <>
          <TextInput name="project" label="Project" defaultValue={project} list="projects" required />
          <datalist id="projects">
            {projects.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
      <LimitInputs />
    </FormDialog>
  );
}

function ScopesField() {
  const { errors, attributes } = useField(['scopes']);
  return (
    <fieldset>
      <legend>Scopes</legend>
      {SCOPES.filter(may).map((scope) => (
        <label key={scope} class="check">
          <input type="checkbox" name="scopes" value={scope} {...attributes} />
          {scope}
        </label>
      ))}
      {errors}
    </fieldset>
  );
}

interface KeyDialogProps {
  apiKey: ApiKey;
  onClose: () => void;
}

/** Changes what can be changed of a key: not its scopes and its project. */
export function ChangeKey({ apiKey, onClose }: KeyDialogProps) {
  const { id, name, scopes, project } = apiKey;
  const change = async (form: FormData) => {
    const patch = keyPatchOf(form, apiKey);
    if (Object.keys(patch).length === 0) return null;
    await client.apiKeys.update(id, patch);
    if (isOwn(apiKey)) await readSession();
    return null;
  };
  return (
    <FormDialog title={`Change ${name}`} submit="Save" send={change} onClose={onClose}>
      <p class="muted">
        The key keeps its scopes ({scopes.join(', ')}) and its project ({project}): create another key for
        others.
      </p>
      <TextInput name="name" label="Name" required defaultValue={name} />
      <LimitInputs apiKey={apiKey} />
    </FormDialog>
  );
}

function LimitInputs({ apiKey }: { apiKey?: ApiKey }) {
  return (
    <>
      <TextInput
        name="expires_at"
        label="Expires (never, if empty)"
        type="datetime-local"
        defaultValue={localOf(apiKey?.expires_at ?? null)}
      />
      <TextInput
        name="requests_per_minute"
        label="Requests per minute (the server's limit, if empty)"
        type="number"
        min={1}
        defaultValue={apiKey?.requests_per_minute ?? ''}
      />
    </>
  );
}

export function RotateKey({ apiKey, onClose }: KeyDialogProps) {
  const rotate = async (form: FormData) => (await client.apiKeys.rotate(apiKey.id, overlapOf(form))).secret;
  return (
    <FormDialog title={`New secret of ${apiKey.name}`} submit="Rotate" send={rotate} onClose={onClose}>
      <p>The key gets a new secret and keeps its scopes.</p>
      <OverlapField />
      {isOwn(apiKey) && <p class="muted small">Your session ends if the previous secret works no longer.</p>}
    </FormDialog>
  );
}
