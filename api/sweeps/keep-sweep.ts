import { sweepDocumentKey, sweepRunsKey } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { putSweepDocument, type StoredSweep, type SweepRecords } from '../../state/index.js';
import { keepRecord } from '../access/change-record.js';

/** Stores the document of a changed sweep; those of a deleted one are removed. */
export function keepSweep(
  { store, objects }: { store: Pick<SweepRecords, 'getSweep'>; objects: ObjectStore },
  changed: StoredSweep,
): Promise<void> {
  const { id, project } = changed;
  return keepRecord(changed, {
    put: (record) => putSweepDocument(objects, record),
    read: () => store.getSweep(project, id),
    remove: () => objects.delete([sweepDocumentKey(id), sweepRunsKey(id)]),
  });
}
