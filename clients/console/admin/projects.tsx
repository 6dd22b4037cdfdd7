import { useSignal } from '@preact/signals';
import type { Project } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { GIB, quotaOf } from './fields.js';
import { FormDialog, TextInput } from './form-dialog.js';
import { sharesOf } from './usage.js';

/** All projects with their use and quotas, for operators. */
export function Projects() {
  const projects = useLoaded(() => client.projects.list(), []);
  const open = useSignal<Project | null>(null);
  const close = () => {
    open.value = null;
    void projects.reload();
  };
  return (
    <section class="card scroll" aria-label="Projects">
      <h2>All projects now</h2>
      {projects.fault.value && <Notice fault={projects.fault.value} />}
      <table>
        <TableHead names={['Project', 'Unfinished runs', 'Ranks', 'Storage', 'Actions']} />
        <tbody>
          {projects.value.value?.map((project) => (
            <tr key={project.name}>
              <th scope="row">{project.name}</th>
              {sharesOf(project).map(({ label, text }) => (
                <td key={label}>{text}</td>
              ))}
              <td class="actions">
                <button type="button" class="quiet" onClick={() => (open.value = project)}>
                  Change quota
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {open.value && <QuotaDialog project={open.value} onClose={close} />}
    </section>
  );
}

function QuotaDialog({ project, onClose }: { project: Project; onClose: () => void }) {
  const { quota } = project;
  const save = async (form: FormData) => {
    await client.projects.put(project.name, quotaOf(form));
    return null;
  };
  const { max_storage_bytes } = quota;
  const storage = max_storage_bytes === null ? null : max_storage_bytes / GIB;
  const fields = [
    { name: 'max_jobs', label: 'Unfinished runs', limit: quota.max_jobs },
    { name: 'max_ranks', label: 'Ranks', limit: quota.max_ranks },
    { name: 'max_storage', path: 'max_storage_bytes', label: 'Storage in GiB', limit: storage, step: 'any' },
  ];
  return (
    <FormDialog title={`Quota of ${project.name}`} submit="Save" send={save} onClose={onClose}>
      <p class="muted">An empty field is no limit. A lower limit removes nothing: it refuses what is new.</p>
      {fields.map(({ name, label, path = name, limit, step = 1 }) => (
        <TextInput
          key={name}
          name={name}
          label={label}
          path={['quota', path]}
          type="number"
          min={0}
          step={step}
          defaultValue={limit === null ? '' : String(limit)}
        />
      ))}
    </FormDialog>
  );
}
