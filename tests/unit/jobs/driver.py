"""A run of jobs that tell when they begin and end; one kills its worker the first time."""

import sys

from tilewright.jobs import Job, Runner
from tilewright.store import Results


def jobs(folder, count, seconds, deadly):
    def work(number):
        import os
        import time
        from pathlib import Path

        import ray

        place = Path(folder)
        begun = len(list(place.glob(f"begun-{number}-*")))
        (place / f"begun-{number}-{begun}").write_text(ray.get_runtime_context().get_node_id())
        if number == deadly and not begun:
            os.kill(os.getpid(), 9)
        time.sleep(seconds)
        (place / f"ended-{number}-{begun}").touch()
        return {"square": number * number}

    return [Job({"number": number}, work, inputs=(number,)) for number in range(count)]


if __name__ == "__main__":
    store, folder, count, seconds, deadly = sys.argv[1:]
    with Results(store, "cluster") as kept:
        runner = Runner(on="ray", keeper=kept)
        values = runner.run(jobs(folder, int(count), float(seconds), int(deadly)))
    print(runner.computed, sum(value["square"] for value in values))
