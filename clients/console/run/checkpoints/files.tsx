import type { ExportFile } from '../../../../contracts/types.js';
import { share } from '../../app/session.js';
import { bytes } from '../../parts/format.js';
import { archiveLink, fileLink, type Kind } from './export-kinds.js';

interface FilesProps {
  checkpoint_id: string;
  kind: Kind | null;
  files: readonly ExportFile[];
}

/** The files, with links for sessions that may read them. */
export function Files({ checkpoint_id, kind, files }: FilesProps) {
  if (files.length === 0) return null;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return (
    <ul class="files">
      {share.value === null && files.length > 1 && (
        <li>
          <a href={archiveLink(checkpoint_id, kind)} download={`${checkpoint_id}.tar`}>
            All files as one archive
          </a>{' '}
          <span class="muted">{bytes(total)}</span>
        </li>
      )}
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
