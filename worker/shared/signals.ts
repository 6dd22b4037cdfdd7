/**
 * Lets a child process survive SIGTERM, for its agent to save and end it. Slurm and systemd send the signal to all
 * processes of an allocation or unit.
 */
export function leaveSignalsToAgent(): void {
  process.on('SIGTERM', () => undefined);
}
