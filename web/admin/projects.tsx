import { useSignal } from '@preact/signals';
import type { Project } from '../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { GIB, quotaOf } from './fields.js';
import { FormDialog } from './form-dialog.js';
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

function QuotaDialog({ project: { name, quota }, onClose }: { project: Project; onClose: () => void }) {
  const save = async (form: FormData) => {
    await client.projects.put(name, quotaOf(form));
    return null;
  };
  const { max_storage_bytes } = quota;
  const fields = [
    ['max_jobs', 'Unfinished runs', quota.max_jobs, 1],
    ['max_ranks', 'Ranks', quota.max_ranks, 1],
    ['max_storage', 'Storage in GiB', max_storage_bytes === null ? null : max_storage_bytes / GIB, 'any'],
  ] as const;
  return (
    <FormDialog title={`Quota of ${name}`} submit="Save" send={save} onClose={onClose}>
      <p class="muted">An empty field is no limit. A lower limit removes nothing: it refuses what is new.</p>
      {fields.map(([field, label, limit, step]) => (
        <label key={field}>
          {label}
          <input
            name={field}
            type="number"
            min={0}
            step={step}
            defaultValue={limit === null ? '' : String(limit)}
          />
        </label>
      ))}
    </FormDialog>
  );
}
