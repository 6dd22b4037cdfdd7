import type { Job } from '../../../../contracts/types.js';
import { FormDialog } from '../../admin/form-dialog.js';
import { client } from '../../app/connection.js';
import { Labelled } from '../../parts/labelled.js';
import type { LiveRun } from '../live-run.js';
import { labelsIn, labelsPatch, labelsText } from './labels.js';

/** Name, labels and notes of a run, which also change after its end. */
export function EditRun({ run, job, onClose }: { run: LiveRun; job: Job; onClose: () => void }) {
  const { id, name, labels } = job;
  const send = async (form: FormData) => {
    const written = String(form.get('name'));
    const changed = {
      ...(written !== name && { name: written }),
      labels: labelsPatch(labels, labelsIn(String(form.get('labels')))),
      notes: String(form.get('notes')).replaceAll('\r\n', '\n'),
    };
    run.set(await client.jobs.update(id, changed));
    return null;
  };
  return (
    <FormDialog title="Name, labels and notes" submit="Save" send={send} onClose={onClose}>
      <Labelled label="Name" path={['name']}>
        {(attributes) => <input {...attributes} name="name" defaultValue={name} maxLength={100} />}
      </Labelled>
      <Labelled label="Labels, one name=value a line" path={['labels']}>
        {(attributes) => (
          <textarea {...attributes} class="mono" name="labels" rows={4} defaultValue={labelsText(labels)} />
        )}
      </Labelled>
      <Labelled label="Notes" path={['notes']}>
        {(attributes) => (
          <textarea {...attributes} name="notes" rows={4} maxLength={4000} defaultValue={job.spec.notes} />
        )}
      </Labelled>
    </FormDialog>
  );
}
