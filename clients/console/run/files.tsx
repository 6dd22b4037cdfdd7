import type { ExportFile } from '../../../contracts/types.js';
import { share } from '../app/session.js';
import { bytes } from '../parts/format.js';
import { fileLink, type Kind } from './export-kinds.js';

interface FilesProps {
  checkpoint_id: string;
  kind: Kind | null;
  files: readonly ExportFile[];
}

/** The files, with links for sessions that may read them. */
export function Files({ checkpoint_id, kind, files }: FilesProps) {
  if (files.length === 0) return null;
  return (
    <ul class="files">
      {files.map(({ name, bytes: size }) => (
        <li key={name}>
          {share.value === null ? (
            <a href={fileLink(checkpoint_id, name, kind)} download={name}>
              {name}
            </a>
          ) : (
            name
          )}{' '}
          <span class="muted">{bytes(size)}</span>
        </li>
      ))}
    </ul>
  );
}
