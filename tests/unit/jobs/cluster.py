"""A Ray cluster of two nodes on this machine: tells its address, loses a node where a line asks for that."""

import json
import socket
import sys

from ray.cluster_utils import Cluster

STORE = 80_000_000


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main():
    port = free_port()
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "ray_client_server_port": port})
    other = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    print(json.dumps({"on": f"ray://127.0.0.1:{port}", "address": cluster.address, "other": other.node_id}), flush=True)
    for _ in sys.stdin:
        cluster.remove_node(other, allow_graceful=False)
        print("lost", flush=True)
        other = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.shutdown()


if __name__ == "__main__":
    main()
