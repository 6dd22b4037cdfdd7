import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import type { Inspector } from '../../inspection/inspector.js';

/** Dependencies of the readers of rows. */
export interface RowsDeps {
  objects: ObjectStore;
  inspector: Inspector;
  /** Owner of the content. */
  project: string;
}
