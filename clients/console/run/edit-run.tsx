import type { Job } from '../../../contracts/types.js';
import { FormDialog } from '../admin/form-dialog.js';
import { client } from '../app/connection.js';
import { Labelled } from '../parts/labelled.js';
import { labelsIn, labelsPatch, labelsText } from './labels.js';
import type { LiveRun } from './live-run.js';

/** Name and labels of a run, which also change after its end. */
export function EditRun({ run, job, onClose }: { run: LiveRun; job: Job; onClose: () => void }) {
  const { id, name, labels } = job;
  const send = async (form: FormData) => {
    const written = String(form.get('name'));
    const changed = {
      ...(written !== name && { name: written }),
      labels: labelsPatch(labels, labelsIn(String(form.get('labels')))),
    };
    run.set(await client.jobs.update(id, changed));
    return null;
  };
  return (
    <FormDialog title="Name and labels" submit="Save" send={send} onClose={onClose}>
      <Labelled label="Name" path={['name']}>
        {(attributes) => <input {...attributes} name="name" defaultValue={name} maxLength={100} />}
      </Labelled>
      <Labelled label="Labels, one name=value a line" path={['labels']}>
        {(attributes) => (
          <textarea {...attributes} class="mono" name="labels" rows={4} defaultValue={labelsText(labels)} />
        )}
      </Labelled>
    </FormDialog>
  );
}
