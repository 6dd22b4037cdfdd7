/** An error that the user can fix; printed without a stack trace. */
export class SetupError extends Error {
  /** @param {string} message the error and its remedy, ready to print */
  constructor(message) {
    super(message);
    this.name = 'SetupError';
  }
}

/** Runs an entry point: a SetupError prints its message and sets exit code 1, any other error keeps its stack trace. */
export async function runMain(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}
