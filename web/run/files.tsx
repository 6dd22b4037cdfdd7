import type { ExportFile } from '../../contracts/types.js';
import { bytes } from '../parts/format.js';
import { fileLink, type Kind } from './export-kinds.js';

interface FilesProps {
  checkpoint_id: string;
  kind: Kind | null;
  files: readonly ExportFile[];
}

/** A link for each file. */
export function Files({ checkpoint_id, kind, files }: FilesProps) {
  if (files.length === 0) return null;
  return (
    <ul class="files">
      {files.map(({ name, bytes: size }) => (
        <li key={name}>
          <a href={fileLink(checkpoint_id, name, kind)} download={name}>
            {name}
          </a>{' '}
          <span class="muted">{bytes(size)}</span>
        </li>
      ))}
    </ul>
  );
}
